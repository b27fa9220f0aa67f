"""Quantities of the study: per tree, per set of draws, per trained model."""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.value_guided.config import EXACT, LAST_TOKEN

trees = Replication("draw", "seeds")
draws = Replication("draw", "draw_seeds")
trainings = Replication("training", "training_seeds")


@trees
def tree(
    rows: Rows,
    column: str,
    horizon: int | None = None,
    values: str = LAST_TOKEN,
    error: float | None = None,
) -> "Series[float]":
    """A number of the trees: by default at the longest horizon, and with the smallest error."""
    table = rows.where("tree", values=values)
    horizon = int(table.horizon.max()) if horizon is None else horizon
    error = float(table.error.min()) if error is None else error
    chosen = table[(table.horizon == horizon) & (table.error == error)]
    return chosen.groupby("seed")[column].mean()


@trees
def growth(rows: Rows, column: str, first: int, values: str = LAST_TOKEN) -> "Series[float]":
    """What a number of the trees grows by from the horizon `first` to the longest, at the smallest error."""
    return tree(column, values=values)(rows) - tree(column, first, values=values)(rows)


@draws
def long(rows: Rows, walk: str, column: str = "sampled", horizon: int | None = None) -> "Series[float]":
    """A number of a walk as it ran, by default at the longest horizon."""
    table = rows.where("long", walk=walk)
    horizon = int(table.horizon.max()) if horizon is None else horizon
    return table[table.horizon == horizon].groupby("seed")[column].mean()


@draws
def beyond_computed(rows: Rows, walk: str) -> "Series[float]":
    """The variation of outputs as measured less the computed one, mean over horizons."""
    table = rows.where("long", walk=walk)
    return (table.sampled - table.computed).groupby(table.seed).mean()


@exact
def cost_exponent(rows: Rows, column: str) -> float:
    """The slope of the logarithm of a number of the chain against that of the horizon, with exact values."""
    return _exponent(rows.where("chain", values=EXACT), column)


@exact
def largest_cost_exponent(rows: Rows, column: str) -> float:
    """Return the largest such slope over the kinds and sizes of errors, with approximate values."""
    table = rows["chain"]
    approximate = table[table["values"] != EXACT]
    return max(_exponent(part, column) for _, part in approximate.groupby(["values", "error"]))


def _exponent(table: DataFrame, column: str) -> float:
    """Fit the slope over all horizons but the shortest."""
    table = table[table.horizon > table.horizon.min()]
    means = table.groupby("horizon")[column].mean()
    return float(np.polyfit(np.log(means.index), np.log(means), 1)[0])


@exact
def least_leaf_mass(rows: Rows) -> float:
    """The smallest ratio of the mass of the leaves to 1 / (2 (1 + e) H), over trees, horizons and errors."""
    table = rows["tree"]
    return float((table.leaf_mass * 2 * (1 + table.error) * table.horizon).min())


@exact
def golden_residual(rows: Rows) -> float:
    """The largest relative difference, with exact values, from leaf mass 1/(2H), 2 H^2 steps, and the gap in print."""
    table, chain = rows.where("tree", values=EXACT), rows.where("chain", values=EXACT)
    return float(
        max(
            abs(table.leaf_mass * 2 * table.horizon - 1).max(),
            abs(table.moves / table.horizon**2 - 1).max(),
            abs(chain.gap - chain.closed_gap).max(),
            abs(chain.steps / (2 * chain.horizon**2) - 1).max(),
        )
    )


@trainings
def dyck(rows: Rows, rule: str, values: str = "", column: str = "variation") -> "Series[float]":
    """A number of a rule on the models of Dyck strings, mean over prompts."""
    return rows.where("dyck", rule=rule, values=values).groupby("seed")[column].mean()


@trainings
def log_queries(rows: Rows, rule: str, values: str = "", column: str = "queries") -> "Series[float]":
    """The natural logarithm of the queries of an output."""
    return dyck(rule, values, column)(rows).map(math.log)
