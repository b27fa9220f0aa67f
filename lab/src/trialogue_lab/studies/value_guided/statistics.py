"""Statistics of the study about value-guided sampling with approximate values.

The value of a prefix is the expected outcome of its completions. The samplers are action-level sampling, which weights
each next token by its value, and a random walk on the tree of prefixes. The first leaf is the first complete sequence
that the walk reaches. The horizon H is the length of a sequence. Approximate values differ from exact ones by a factor
of at most 1 + e.
"""

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
    """Return a computed value on random trees of two tokens.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value: "action_level", "first_leaf" or "stationary" for the total variation of a sampler
            from the target, "leaf_mass", "moves" or "nodes".
        horizon: Length of the sequences. None for the longest.
        values: Kind of errors in the values: "exact" for none, "last token" for errors that depend on the last token,
            or "uniform" for random signs.
        error: Size e of the errors. None for the smallest.

    Returns:
        One value per seed of the tree.
    """
    table = rows.where("tree", values=values)
    horizon = int(table.horizon.max()) if horizon is None else horizon
    error = float(table.error.min()) if error is None else error
    chosen = table[(table.horizon == horizon) & (table.error == error)]
    return chosen.groupby("seed")[column].mean()


@trees
def growth(rows: Rows, column: str, first: int, values: str = LAST_TOKEN) -> "Series[float]":
    """Return the increase of a computed value on random trees from a short to the longest horizon.

    The values have errors of the smallest measured size.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the computed value (see `tree`), for example "first_leaf".
        first: The short horizon.
        values: Kind of errors in the values (see `tree`).

    Returns:
        One increase per seed of the tree.
    """
    return tree(column, values=values)(rows) - tree(column, first, values=values)(rows)


@draws
def long(rows: Rows, walk: str, column: str = "sampled", horizon: int | None = None) -> "Series[float]":
    """Return a measured value of a sampler that is run on sequences too long for enumeration.

    Args:
        rows: Measured rows of a run, by kind.
        walk: Name of the sampler, "action level" or "first leaf".
        column: "sampled" for the total variation estimated from samples, "computed" for the computed one, or "queries"
            (model calls per output).
        horizon: Length of the sequences. None for the longest.

    Returns:
        One value per seed of the outputs.
    """
    table = rows.where("long", walk=walk)
    horizon = int(table.horizon.max()) if horizon is None else horizon
    return table[table.horizon == horizon].groupby("seed")[column].mean()


@draws
def beyond_computed(rows: Rows, walk: str) -> "Series[float]":
    """Return the total variation estimated from samples minus the computed one.

    Args:
        rows: Measured rows of a run, by kind.
        walk: Name of the sampler, "action level" or "first leaf".

    Returns:
        One mean over horizons per seed of the outputs.
    """
    table = rows.where("long", walk=walk)
    return (table.sampled - table.computed).groupby(table.seed).mean()


@exact
def cost_exponent(rows: Rows, column: str) -> float:
    """Return the exponent with which a cost of the random walk grows with the horizon, for exact values.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the cost: "steps" to the first leaf, "mixing" or "leaf_mixing" (mixing times).
    """
    return _exponent(rows.where("chain", values=EXACT), column)


@exact
def largest_cost_exponent(rows: Rows, column: str) -> float:
    """Return the exponent with which a cost of the random walk grows with the horizon, for approximate values.

    The largest exponent over kinds and sizes of errors is returned.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the cost: "steps" to the first leaf, "mixing" or "leaf_mixing" (mixing times).
    """
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
    """Return the smallest ratio of the random walk's stationary probability of complete sequences to its bound.

    The bound is 1 / (2 (1 + e) H). The minimum is over trees, horizons H and errors e. The bound holds if it is at
    least 1.
    """
    table = rows["tree"]
    return float((table.leaf_mass * 2 * (1 + table.error) * table.horizon).min())


@exact
def golden_residual(rows: Rows) -> float:
    """Return the largest error of closed forms for the random walk with exact values.

    The closed forms are the stationary probability 1 / (2 H) of complete sequences, 2 H^2 steps to the first one, and
    the spectral gap.
    """
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
    """Return a measured value of a sampler on models of Dyck strings (balanced brackets), averaged over prompts.

    Args:
        rows: Measured rows of a run, by kind.
        rule: Name of the sampler, for example "first leaf" or "backtracking".
        values: Values that guide the sampler: "exact", "noisy" or "trained". Empty for samplers without values.
        column: "variation" (total variation from the target), "accuracy" or "queries" (model calls per output).

    Returns:
        One mean per training seed.
    """
    return rows.where("dyck", rule=rule, values=values).groupby("seed")[column].mean()


@trainings
def log_queries(rows: Rows, rule: str, values: str = "", column: str = "queries") -> "Series[float]":
    """Return the natural logarithm of a sampler's model calls per output on models of Dyck strings (balanced brackets).

    Args:
        rows: Measured rows of a run, by kind.
        rule: Name of the sampler, for example "first leaf" or "backtracking".
        values: Values that guide the sampler: "exact", "noisy" or "trained". Empty for samplers without values.
        column: "queries" (default), or "nodes" for calls with a cache.

    Returns:
        One logarithm of the mean per training seed.
    """
    return dyck(rule, values, column)(rows).map(math.log)
