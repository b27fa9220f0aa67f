"""Statistics of the study about sequential Monte Carlo (SMC), a sampler with several weighted particles.

The value of a prefix is the expected outcome of its completions. A number of particles is sufficient if the total
variation distance between output and target is at most the tolerance of the run.
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


def _fit_slope(table: DataFrame, column: str = "needed") -> float:
    """Fit the slope of log(column) as a function of log(length)."""
    return float(np.polyfit(np.log(table.length), np.log(table[column]), 1)[0])


@targets
def exponent(rows: Rows, values: str = POSITIVE) -> "Series[float]":
    """Return the exponent b if sequential Monte Carlo (SMC) needs about (sequence length)^b particles.

    SMC extends several sequences, called particles, and resamples them by the values of their prefixes. The value of a
    prefix is the expected outcome of its completions, and is exact here. The number of particles is the smallest one
    for which the output is close to the target.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        values: "positive" (default), or "zero or one" if the value only states whether a valid completion exists.

    Returns:
        One exponent per seed of the target.
    """
    table = rows.where("particles", values=values)
    return Series({seed: _fit_slope(part) for seed, part in table.groupby("seed")}, dtype=float)


@targets
def particles(rows: Rows, length: int, values: str = POSITIVE) -> "Series[float]":
    """Return the number of particles that sequential Monte Carlo needs, if the values of prefixes are exact.

    Particles are sequences that are extended in parallel, and resampled by the values of their prefixes. The value of a
    prefix is the expected outcome of its completions. The number is the smallest one for which the output is close to
    the target.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        length: Number of tokens of a sequence.
        values: "positive" (default), or "zero or one" if the value only states whether a valid completion exists.

    Returns:
        One number per seed of the target.
    """
    return rows.require("particles", values=values, length=length).set_index("seed").needed


@targets
def log_calls(rows: Rows, sampler: str = "", length: int | None = None) -> "Series[float]":
    """Return log10 of the number of model calls that a sampler needs per output.

    The sampler uses a perfect verifier, which rejects a prefix if it has no valid completion.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: "" (default) for sequential Monte Carlo (SMC), "rejection" for rejection of complete sequences, or
            "stopping" for rejection that stops at the first impossible token.
        length: Number of tokens of a sequence. None (default) for the shortest sequences.

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
    """Return a measurement of samplers that are guided by values with errors.

    The value of a prefix is the expected outcome of its completions. An error is log(value of a prefix / expected value
    one token later), and is called a Bellman error. The outcome depends only on the first token, which selects one of
    two branches.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column.
            - "needed" (default): number of particles that sequential Monte Carlo (SMC) needs.
            - "first_leaf": total variation distance of the first complete sequence of the value-guided walk from the
              target.
            - "moves": model calls of this walk.
            - "particles": total variation distance of SMC with equally many model calls.
        error: Kind of Bellman errors: "proportional to 1 / H" (default) for sequences of H tokens, "constant" or
            "none".
        length: Number of tokens H of a sequence. None (default) for the longest sequences.

    Returns:
        One number per seed of the target.
    """
    table = rows.where("branch", error=error)
    length = int(table.length.max()) if length is None else length
    return table[table.length == length].set_index("seed")[column]


@targets
def error_exponent(rows: Rows) -> "Series[float]":
    """Return the exponent b if sequential Monte Carlo needs about H^b particles, for values with small errors.

    H is the length of a sequence. The value of a prefix is the expected outcome of its completions. Its Bellman error
    log(value / expected value one token later) is proportional to 1 / H.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One exponent per seed of the target.
    """
    table = rows.where("branch", error=BY_LENGTH)
    return Series({seed: _fit_slope(part) for seed, part in table.groupby("seed")}, dtype=float)


@targets
def rise_of_exponent(rows: Rows) -> "Series[float]":
    """Return how much faster the number of particles grows for long sequences than for short ones.

    Sequential Monte Carlo needs this number of particles if the values of prefixes have errors of constant size. The
    growth exponent is the slope of log(particles needed) over log(length) between two successive lengths. If it is
    constant, growth is polynomial.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        (exponent between the two longest lengths) - (exponent between the two shortest lengths), per seed of
        the target.
    """
    table = rows.where("branch", error=CONSTANT).sort_values("length")
    return Series(
        {seed: _fit_slope(part[-2:]) - _fit_slope(part[:2]) for seed, part in table.groupby("seed")},
        dtype=float,
    )


@targets
def criterion_correlation(rows: Rows, criterion: str) -> "Series[float]":
    """Return the rank correlation between a criterion and the error of sequential Monte Carlo (SMC).

    A criterion is a number that is meant to predict whether SMC works. The error is the total variation distance of the
    output of SMC from the target. Both are computed for many small random models (trees).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        criterion: "coverage" is the largest ratio target probability / model probability of a next token. It is
            compared with the error for perfect values. "chi_square" is the divergence of approximate from exact values.
            It is compared with the increase of the error that is due to approximate values.

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
    """Return the share of verifiers with which rejection is less accurate than best-of-n.

    Rejection returns the first output with a score above a threshold, and best-of-n returns the best of n outputs. Both
    sample equally many outputs on average. Verifiers are given by random ROC curves.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        curve: "any" (default) for random curves, or "concave".

    Returns:
        One mean over numbers n per seed of the curves.
    """
    table = rows.where("curves", curve=curve)
    table = table[table.budget < table.budget.max()]
    return table.groupby("seed").worse.mean()


@targets
def accuracy_gain(rows: Rows, curve: str, budget: int) -> "Series[float]":
    """Return the accuracy of rejection by a threshold minus the accuracy of best-of-n.

    Rejection returns the first output with a verifier score above a threshold. Best-of-n returns the best of n outputs.
    Verifiers are given by random ROC curves.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        curve: "any" for random curves, or "concave".
        budget: Number n of outputs that both methods sample on average.

    Returns:
        One mean over curves per seed of the curves.
    """
    return rows.require("curves", curve=curve, budget=budget).set_index("seed").gain


@targets
def distance_in_the_limit(rows: Rows) -> "Series[float]":
    """Return the mean absolute difference in accuracy between rejection and best-of-n, for the largest n.

    Rejection returns the first output with a verifier score above a threshold. Best-of-n returns the best of n outputs.
    Verifiers are given by random ROC curves.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean over both kinds of curves per seed of the curves.
    """
    table = rows["curves"]
    return table[table.budget == table.budget.max()].groupby("seed").distance.mean()


@draws
def shortfall(rows: Rows, threshold: float) -> "Series[float]":
    """Return how much too rarely sequential Monte Carlo generates token 0.

        shortfall = (probability of token 0 in the target) - (frequency of token 0 in the outputs)

    Sequential Monte Carlo extends several sequences, called particles, and resamples them by the values of their
    prefixes. Values are exact here, and the target has a higher probability of token 0 than the model.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        threshold: Particles are resampled if (effective sample size) / (number of particles) is below this threshold.
            With 1, they are resampled after every token.

    Returns:
        One difference per seed of the outputs.
    """
    table = rows.where("draws", threshold=threshold).set_index("seed")
    return table.target - table.share


@draws
def computed_shortfall(rows: Rows) -> "Series[float]":
    """Return how much too small the exact probability of token 0 is under sequential Monte Carlo.

        shortfall = (probability of token 0 in the target) - (probability of token 0 in the outputs)

    Sequential Monte Carlo extends several sequences, called particles. Here, they are resampled after every token by
    exact values of their prefixes.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One difference per seed of the outputs.
    """
    table = rows.where("draws", threshold=1.0).set_index("seed")
    return table.target - table.computed
