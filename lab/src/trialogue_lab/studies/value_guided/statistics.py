"""Statistics of the study: numbers per tree, per set of outputs, and per trained model."""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.value_guided.config import EXACT, LAST_TOKEN

trees = Replication("draw", "seeds")
draws = Replication("draw", "draw_seeds")
trainings = Replication("training", "training_seeds")
COLUMNS = {"variation": "total variation", "accuracy": "accuracy", "queries": "queries"}
"""Headings of the columns of rows about Dyck strings."""


@trees
def tree(
    rows: Rows,
    column: str,
    horizon: int | None = None,
    values: str = LAST_TOKEN,
    error: float | None = None,
) -> "Series[float]":
    """Return a column of the trees, by default at the longest horizon and with the smallest error."""
    table = rows.where("tree", values=values)
    horizon = int(table.horizon.max()) if horizon is None else horizon
    error = float(table.error.min()) if error is None else error
    chosen = table[(table.horizon == horizon) & (table.error == error)]
    return chosen.groupby("seed")[column].mean()


@trees
def growth(rows: Rows, column: str, first: int, values: str = LAST_TOKEN) -> "Series[float]":
    """Return the growth of a column of the trees from the horizon `first` to the longest, at the smallest error."""
    return tree(column, values=values)(rows) - tree(column, first, values=values)(rows)


@draws
def long(rows: Rows, walk: str, column: str = "sampled", horizon: int | None = None) -> "Series[float]":
    """Return a column of a sampler that was run, by default at the longest horizon."""
    table = rows.where("long", walk=walk)
    horizon = int(table.horizon.max()) if horizon is None else horizon
    return table[table.horizon == horizon].groupby("seed")[column].mean()


@draws
def beyond_computed(rows: Rows, walk: str) -> "Series[float]":
    """Return the measured total variation minus the computed one, averaged over horizons."""
    table = rows.where("long", walk=walk)
    return (table.sampled - table.computed).groupby(table.seed).mean()


@exact
def cost_exponent(rows: Rows, column: str) -> float:
    """Return the slope of log(column) against log(horizon) for the chain with exact values."""
    return _exponent(rows.where("chain", values=EXACT), column)


@exact
def largest_cost_exponent(rows: Rows, column: str) -> float:
    """Return the largest such slope over kinds and sizes of errors, with approximate values."""
    table = rows["chain"]
    approximate = table[table["values"] != EXACT]
    return max(_exponent(part, column) for _, part in approximate.groupby(["values", "error"]))


def _exponent(table: DataFrame, column: str) -> float:
    """Fit the slope over all horizons except the shortest."""
    table = table[table.horizon > table.horizon.min()]
    means = table.groupby("horizon")[column].mean()
    return float(np.polyfit(np.log(means.index), np.log(means), 1)[0])


@exact
def least_leaf_mass(rows: Rows) -> float:
    """Return the smallest ratio of the leaf mass to 1 / (2 (1 + e) H), over trees, horizons and errors."""
    table = rows["tree"]
    return float((table.leaf_mass * 2 * (1 + table.error) * table.horizon).min())


@exact
def golden_residual(rows: Rows) -> float:
    """Return the largest error, with exact values, of leaf mass 1/(2H), 2 H^2 steps and the closed-form gap."""
    table, chain = rows.where("tree", values=EXACT), rows.where("chain", values=EXACT)
    residuals = (
        table.leaf_mass * 2 * table.horizon - 1,
        table.moves / table.horizon**2 - 1,
        chain.gap - chain.closed_gap,
        chain.steps / (2 * chain.horizon**2) - 1,
    )
    return max(float(each.abs().max()) for each in residuals)


@trainings
def dyck(rows: Rows, rule: str, values: str = "", column: str = "variation") -> "Series[float]":
    """Return a column of a method on the models of Dyck strings, averaged over prompts."""
    return rows.where("dyck", rule=rule, values=values).groupby("seed")[column].mean()


@trainings
def log_queries(rows: Rows, rule: str, values: str = "", column: str = "queries") -> "Series[float]":
    """Return the natural logarithm of the model calls per output."""
    return dyck(rule, values, column)(rows).map(math.log)
