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
"""Table headings of the columns that are measured on Dyck strings (balanced brackets)."""


@trees
def tree(
    rows: Rows,
    column: str,
    horizon: int | None = None,
    values: str = LAST_TOKEN,
    error: float | None = None,
) -> "Series[float]":
    """Return an exactly computed measurement of value-guided samplers on small random models.

    The value of a prefix is the expected outcome of its completions. Action-level sampling weights each next token by
    its value. The random walk moves between prefixes and their extensions. Its first leaf is the first complete
    sequence that it reaches.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column.
            - "action_level", "first_leaf", "stationary": total variation distance from the target, for action-level
              sampling, for the first leaf, and for the walk's stationary distribution over complete sequences.
            - "leaf_mass": stationary probability of all complete sequences.
            - "moves", "nodes": costs of the walk until the first leaf.
        horizon: Length of the sequences. None (default) for the longest ones.
        values: Errors in the values: "exact" for none, "last token" (default) if they depend on the last token, or
            "uniform" for random signs.
        error: Size e of the errors: values are wrong by a factor of at most 1 + e. None (default) for the smallest e.

    Returns:
        One number per seed of the model.
    """
    table = rows.where("tree", values=values)
    horizon = int(table.horizon.max()) if horizon is None else horizon
    error = float(table.error.min()) if error is None else error
    chosen = table[(table.horizon == horizon) & (table.error == error)]
    return chosen.groupby("seed")[column].mean()


@trees
def growth(rows: Rows, column: str, first: int, values: str = LAST_TOKEN) -> "Series[float]":
    """Return how much an error or a cost of value-guided samplers increases from short to the longest sequences.

    It is a measurement of `tree`, for samplers that are guided by approximate values of prefixes.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "first_leaf", the total variation distance of a value-guided random walk
            from the target.
        first: The short sequence length.
        values: Errors in the values: "exact" for none, "last token" (default) if they depend on the last token, or
            "uniform" for random signs.

    Returns:
        One difference per seed of the model.
    """
    return tree(column, values=values)(rows) - tree(column, first, values=values)(rows)


@draws
def long(rows: Rows, walk: str, column: str = "sampled", horizon: int | None = None) -> "Series[float]":
    """Return a measurement of a value-guided sampler on sequences that are too long to enumerate.

    The samplers are guided by approximate values. The value of a prefix is the expected outcome of its completions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        walk: Name of the sampler. "action level" weights each next token by its value, and "first leaf" walks randomly
            on the tree of prefixes until it reaches a complete sequence.
        column: Name of the column.
            - "sampled" (default): total variation distance from the target, estimated from outputs.
            - "computed": the same distance, computed exactly.
            - "queries": model calls per output.
        horizon: Length of the sequences. None (default) for the longest ones.

    Returns:
        One value per seed of the outputs.
    """
    table = rows.where("long", walk=walk)
    horizon = int(table.horizon.max()) if horizon is None else horizon
    return table[table.horizon == horizon].groupby("seed")[column].mean()


@draws
def beyond_computed(rows: Rows, walk: str) -> "Series[float]":
    """Return the error of a value-guided sampler as estimated from samples, minus its exact value.

    The error is the total variation distance of the outputs from the target. It is estimated from sampled outputs, and
    also computed exactly. The value of a prefix, which guides the sampler, is the expected outcome of its completions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        walk: Name of the sampler. "action level" weights each next token by its value, and "first leaf" walks randomly
            on the tree of prefixes until it reaches a complete sequence.

    Returns:
        One mean difference over sequence lengths, per seed of the outputs.
    """
    table = rows.where("long", walk=walk)
    return (table.sampled - table.computed).groupby(table.seed).mean()


@exact
def cost_exponent(rows: Rows, column: str) -> float:
    """Return the exponent b if the cost of the value-guided walk grows like (sequence length)^b.

    The walk moves randomly on the tree of prefixes, guided by exact values. The value of a prefix is the expected
    outcome of its completions. The exponent is the slope of a linear fit to the logarithms, without the shortest
    length.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the cost: "steps" for the expected number of steps to the first complete sequence, "mixing" for
            the mixing time of the walk on prefixes, or "leaf_mixing" for its mixing time on complete sequences.
    """
    return _fit_exponent(rows.where("chain", values=EXACT), column)


@exact
def largest_cost_exponent(rows: Rows, column: str) -> float:
    """Return the largest exponent b if the cost of the value-guided walk grows like (sequence length)^b.

    The walk moves randomly on the tree of prefixes, guided by values with errors. The maximum is over kinds and sizes
    of errors.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the cost: "steps" for the expected number of steps to the first complete sequence, "mixing" for
            the mixing time of the walk on prefixes, or "leaf_mixing" for its mixing time on complete sequences.
    """
    table = rows["chain"]
    approximate = table[table["values"] != EXACT]
    return max(_fit_exponent(part, column) for _, part in approximate.groupby(["values", "error"]))


def _fit_exponent(table: DataFrame, column: str) -> float:
    """Fit the slope of log(column) against log(horizon), without the shortest horizon."""
    table = table[table.horizon > table.horizon.min()]
    means = table.groupby("horizon")[column].mean()
    return float(np.polyfit(np.log(means.index), np.log(means), 1)[0])


@exact
def least_leaf_mass(rows: Rows) -> float:
    """Return the smallest probability that the value-guided walk is at a complete sequence, relative to a lower bound.

    The walk moves randomly on the tree of prefixes of sequences of length H. It is guided by values that are wrong by a
    factor of at most 1 + e. The stationary probability of complete sequences is divided by the lower bound 1 / (2 (1 +
    e) H).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The minimum over models, H and e. The bound holds if it is at least 1.
    """
    table = rows["tree"]
    return float((table.leaf_mass * 2 * (1 + table.error) * table.horizon).min())


@exact
def golden_residual(rows: Rows) -> float:
    """Return the largest error of three formulas for the value-guided walk with exact values.

    The walk moves randomly on the tree of prefixes of sequences of length H. The formulas are for its spectral gap, the
    stationary probability 1 / (2 H) of complete sequences, and the expected number 2 H^2 of steps to the first one.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The largest absolute or relative error over models and lengths.
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
    """Return a measurement of a sampler on a trained language model of balanced brackets (Dyck strings).

    Some samplers are guided by values. The value of a prefix is the expected outcome of its completions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        rule: Name of the sampler, for example "first leaf" (random walk on the tree of prefixes) or "backtracking".
        values: Values that guide the sampler: "exact", "noisy" or "trained". Empty (default) for samplers without
            values.
        column: "variation" (default) for the total variation distance from the target, "accuracy" for the share of
            valid outputs, or "queries" for the model calls per output.

    Returns:
        One mean over prompts per training seed.
    """
    return rows.where("dyck", rule=rule, values=values).groupby("seed")[column].mean()


@trainings
def log_queries(rows: Rows, rule: str, values: str = "", column: str = "queries") -> "Series[float]":
    """Return the logarithm of the number of model calls per string of balanced brackets (Dyck string).

    Some samplers are guided by values. The value of a prefix is the expected outcome of its completions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        rule: Name of the sampler, for example "first leaf" (random walk on the tree of prefixes) or "backtracking".
        values: Values that guide the sampler: "exact", "noisy" or "trained". Empty (default) for samplers without
            values.
        column: "queries" (default), or "nodes" if repeated calls for the same prefix are cached.

    Returns:
        One natural logarithm of the mean over prompts per training seed.
    """
    return dyck(rule, values, column)(rows).map(math.log)
