"""Statistics of the study about sequential Monte Carlo (SMC), a sampler with several weighted particles.

The value of a prefix is the expected outcome of its completions. The number of particles that is needed is the one with
which the total variation distance between output and target is at most the tolerance of the run.
"""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.smc_criteria.branches import BY_LENGTH, CONSTANT
from trialogue_lab.studies.smc_criteria.curves import ANY
from trialogue_lab.studies.smc_criteria.products import POSITIVE, ZERO_ONE

targets = Replication("draw", "seeds")
draws = Replication("draw", "draw_seeds")


def _slope(table: DataFrame, column: str = "needed") -> float:
    """Fit the slope of the logarithm of a column against log length."""
    return float(np.polyfit(np.log(table.length), np.log(table[column]), 1)[0])


@targets
def exponent(rows: Rows, values: str = POSITIVE) -> "Series[float]":
    """Return the exponent with which the number of particles grows with the length, for perfect values.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        values: "positive" (default), or "zero or one" if the value of a prefix only says whether it is possible.

    Returns:
        One slope of log particles against log length per seed of the target.
    """
    table = rows.where("particles", values=values)
    return Series({seed: _slope(part) for seed, part in table.groupby("seed")}, dtype=float)


@targets
def particles(rows: Rows, length: int, values: str = POSITIVE) -> "Series[float]":
    """Return the number of particles that perfect values need.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        length: Length of the sequences.
        values: "positive" (default), or "zero or one" if the value of a prefix only says whether it is possible.

    Returns:
        One number per seed of the target.
    """
    return rows.require("particles", values=values, length=length).set_index("seed").needed


@targets
def log_calls(rows: Rows, sampler: str = "", length: int | None = None) -> "Series[float]":
    """Return the common logarithm of model calls per output, if the value of a prefix says whether it is possible.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        sampler: "" (default) for SMC, "rejection" for rejection of complete sequences, or "stopping" for rejection that
            stops at the first impossible token.
        length: Length of the sequences. None (default) for the shortest.

    Returns:
        One logarithm per seed of the target.
    """
    table = rows.where("particles", values=ZERO_ONE)
    length = int(table.length.min()) if length is None else length
    column = f"log_{sampler}_calls" if sampler else "log_calls"
    return table[table.length == length].set_index("seed")[column] / math.log(10)


@targets
def branch(
    rows: Rows, column: str = "needed", error: str = BY_LENGTH, length: int | None = None
) -> "Series[float]":
    """Return a computed property of samplers whose values have Bellman errors.

    A Bellman error is the logarithm of the ratio between the value of a prefix and the expected value one token later.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        column: "needed" (default) for the number of particles of SMC that are needed, "first_leaf" for the total
            variation of the first leaf of the value-guided walk, "moves" for its model calls, or "particles" for the
            total variation of SMC with as many model calls.
        error: Kind of Bellman errors: "proportional to 1 / H" (default) for length H, "constant" or "none".
        length: Length of the sequences. None (default) for the longest.

    Returns:
        One number per seed of the target.
    """
    table = rows.where("branch", error=error)
    length = int(table.length.max()) if length is None else length
    return table[table.length == length].set_index("seed")[column]


@targets
def error_exponent(rows: Rows) -> "Series[float]":
    """Return the exponent with which the number of particles grows with the length, if Bellman errors shrink with it.

    A Bellman error is the logarithm of the ratio between the value of a prefix and the expected value one token later.
    Here it is proportional to 1 / H for sequences of length H.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        One slope of log particles against log length per seed of the target.
    """
    table = rows.where("branch", error=BY_LENGTH)
    return Series({seed: _slope(part) for seed, part in table.groupby("seed")}, dtype=float)


@targets
def rise_of_exponent(rows: Rows) -> "Series[float]":
    """Return how much faster the number of particles grows at longer sequences, for constant Bellman errors.

    The exponent is the slope of log particles against log length between two neighbouring lengths. It stays the same if
    the number of particles is a power of the length.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        The exponent between the two longest lengths minus the one between the two shortest, per seed of the target.
    """
    table = rows.where("branch", error=CONSTANT).sort_values("length")
    return Series(
        {seed: _slope(part[-2:]) - _slope(part[:2]) for seed, part in table.groupby("seed")}, dtype=float
    )


@targets
def criterion_correlation(rows: Rows, criterion: str) -> "Series[float]":
    """Return the rank correlation between a criterion and the error of SMC, over small random trees.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        criterion: "coverage" (the largest ratio of a next-token probability in the target to the one under the model),
            compared with the total variation for perfect values, or "chi_square" (of approximate from exact values),
            compared with the increase of the total variation by the errors of the values.

    Returns:
        One Spearman correlation per seed of the trees.
    """
    table = rows["tree"]
    table["error"] = table.perfect if criterion == "coverage" else table.noisy - table.perfect
    ranked = {
        seed: part[[criterion, "error"]].rank().corr().iloc[0, 1] for seed, part in table.groupby("seed")
    }
    return Series(ranked, dtype=float)


@targets
def worse_curves(rows: Rows, curve: str = ANY) -> "Series[float]":
    """Return the share of ROC curves on which rejection by a threshold is less accurate than best-of-n.

    Both samplers draw equally many outputs on average.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        curve: "any" (default) for random curves, or "concave".

    Returns:
        One mean over numbers of outputs per seed of the curves.
    """
    table = rows.where("curves", curve=curve)
    table = table[table.budget < table.budget.max()]
    return table.groupby("seed").worse.mean()


@targets
def accuracy_gain(rows: Rows, curve: str, budget: int) -> "Series[float]":
    """Return the accuracy of rejection by a threshold minus that of best-of-n, over random ROC curves.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        curve: "any" for random curves, or "concave".
        budget: Number of outputs that both samplers draw on average.

    Returns:
        One mean over curves per seed of the curves.
    """
    return rows.require("curves", curve=curve, budget=budget).set_index("seed").gain


@targets
def distance_in_the_limit(rows: Rows) -> "Series[float]":
    """Return the mean absolute difference in accuracy between rejection and best-of-n, at the largest budget.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        One mean over random ROC curves of both kinds, per seed of the curves.
    """
    table = rows["curves"]
    return table[table.budget == table.budget.max()].groupby("seed").distance.mean()


@draws
def shortfall(rows: Rows, threshold: float) -> "Series[float]":
    """Return by how much outputs of SMC have too few tokens 0.

    Values are perfect, and the target has more tokens 0 than the model.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        threshold: Particles are resampled if the effective sample size is below this share of their number. With 1,
            they are resampled after every token.

    Returns:
        The share of token 0 in the target minus the share in the outputs, per seed of the outputs.
    """
    table = rows.where("draws", threshold=threshold).set_index("seed")
    return table.target - table.share


@draws
def computed_shortfall(rows: Rows) -> "Series[float]":
    """Return by how much outputs have too few tokens 0, computed for resampling after every token.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        The share of token 0 in the target minus the computed share in the outputs, per seed of the outputs.
    """
    table = rows.where("draws", threshold=1.0).set_index("seed")
    return table.target - table.computed
