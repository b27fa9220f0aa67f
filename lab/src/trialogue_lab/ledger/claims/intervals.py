"""Confidence intervals from independent replications (trainings, prompt sets or random draws).

Means of numbers use Student's interval, widened for skewed samples (`mean_bounds`). Fractions of successes use
`share_bounds`, or the Clopper-Pearson interval if all trials have the same probability.
"""

import math
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from trialogue.intervals import Interval
from trialogue.intervals.bounds import mean_bounds, share_bounds

_LARGEST = math.log(sys.float_info.max)


class Counts(NamedTuple):
    """Successes and trials of each replication, which define the fraction of successes.

    Attributes:
        successes: Number of successes, one per replication.
        trials: Number of trials, one per replication.
        identical: Whether all trials are independent with one common probability, as in simulations of one
            distribution. Only then are they pooled over replications. Set it to False for trials on different trained
            models or texts.
    """

    successes: Any
    trials: Any
    identical: bool = False


def counts_from_shares(shares: Any, trials: int, *, identical: bool = False) -> Counts:
    """Convert fractions of successes to `Counts` (numbers of successes and trials).

    Args:
        shares: Fractions of successes between 0 and 1, one per replication.
        trials: Number of trials in each replication.
        identical: Whether all trials have one common probability (see `Counts`).
    """
    return Counts((shares * trials).round(), shares * 0 + trials, identical)


def interval(
    estimates: NDArray[np.floating[Any]],
    alpha: float,
    *,
    logarithmic: bool = False,
    counts: Counts | None = None,
) -> Interval:
    """Return the mean of independent replications with its confidence interval.

    Args:
        estimates: One number per replication (n,).
        alpha: Two-sided error rate. The confidence level is 1 - alpha.
        logarithmic: Average logarithms, so that the estimate is the geometric mean.
        counts: Successes and trials, if the numbers are fractions of successes. If `counts.identical` is true, the
            trials are pooled into one Clopper-Pearson interval.

    Returns:
        Estimate and interval ends. The ends are NaN if there is a single number, or if all numbers are equal and not
        fractions, because the spread between replications is then unknown.
    """
    only = counts and Counts(
        np.asarray(counts.successes)[None], np.asarray(counts.trials)[None], counts.identical
    )
    return intervals(estimates[None], alpha, logarithmic=logarithmic, counts=only)[0]


def intervals(
    samples: NDArray[np.floating[Any]],
    alpha: float,
    *,
    logarithmic: bool = False,
    counts: Counts | None = None,
) -> list[Interval]:
    """Return the interval that `interval` returns for each of several samples.

    Args:
        samples: Samples (m, n) of n replications each.
        alpha: Two-sided error rate. The confidence level is 1 - alpha.
        logarithmic: Average logarithms, so that the estimate is the geometric mean.
        counts: Successes (m, n) and trials (m, n), if the numbers are fractions of successes.
    """
    shares = None if logarithmic else counts
    if shares is not None and shares.identical:
        totals = zip(shares.successes.sum(1).tolist(), shares.trials.sum(1).tolist(), strict=True)
        return [_compute_binomial_interval(successes, trials, alpha) for successes, trials in totals]
    values = np.log(samples) if logarithmic else samples
    low = high = np.full(len(values), math.nan)
    if shares is not None:
        low, high = share_bounds(values, alpha)
    elif values.shape[1] > 1:
        low, high = mean_bounds(values, alpha)
    back = exponential if logarithmic else float
    return [
        Interval(*map(back, ends))
        for ends in zip(values.mean(axis=1).tolist(), low.tolist(), high.tolist(), strict=True)
    ]


def _compute_binomial_interval(successes: float, trials: float, alpha: float) -> Interval:
    low = float(special.betaincinv(successes, trials - successes + 1, alpha / 2)) if successes > 0 else 0.0
    failures = trials - successes
    high = float(special.betaincinv(successes + 1, failures, 1 - alpha / 2)) if failures > 0 else 1.0
    return Interval(successes / trials, low, high)


def exponential(logarithm: float) -> float:
    """Return `exp(logarithm)`, or infinity if it overflows."""
    return math.inf if logarithm >= _LARGEST else math.exp(logarithm)
