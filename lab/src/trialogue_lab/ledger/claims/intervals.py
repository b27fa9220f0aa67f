"""Confidence intervals over independent replications.

The unit is the replication. The interval of numbers, or of their logarithms, is `mean_bounds`, which widens Student's
interval by the skewness of the sample. The interval of shares is `share_bounds`. Trials are pooled over replications
only if they are declared identically distributed.
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
    """Numbers of successes and trials, from which a share is computed.

    Attributes:
        successes: Number of successes, one per replication.
        trials: Number of trials, one per replication.
        identical: Whether all trials of all replications are independent and have the same probability, as in a
            simulation of one fixed distribution. Only then are trials pooled. Trials of different trainings or texts
            are not identical, even if all of them succeed.
    """

    successes: Any
    trials: Any
    identical: bool = False


def counts_from_shares(shares: Any, trials: int, *, identical: bool = False) -> Counts:
    """Convert shares of successes to numbers of successes and trials.

    Args:
        shares: Share of successes, one per replication.
        trials: Number of trials in each replication.
        identical: Whether all trials of all replications are independent and have the same probability (see `Counts`).
    """
    return Counts((shares * trials).round(), shares * 0 + trials, identical)


def interval(
    estimates: NDArray[np.floating[Any]],
    alpha: float,
    *,
    logarithmic: bool = False,
    counts: Counts | None = None,
) -> Interval:
    """Return the estimate and the confidence interval of independent replications.

    Args:
        estimates: One number per replication (n,).
        alpha: Two-sided error rate. The confidence level is 1 - alpha.
        logarithmic: Average the logarithms of the numbers. The estimate is then the geometric mean.
        counts: Successes and trials of each replication, if the numbers are shares. If `counts.identical` is true, the
            trials are pooled and the interval is the Clopper-Pearson interval.

    Returns:
        The interval. Its ends are NaN for a single number, and for equal numbers that are not shares, because they do
        not show how much replications can differ.
    """
    if counts is not None and not logarithmic:
        if counts.identical:
            return _binomial(float(counts.successes.sum()), float(counts.trials.sum()), alpha)
        low, high = share_bounds(estimates[None], alpha)
        return Interval(float(estimates.mean()), float(low[0]), float(high[0]))
    values = np.log(estimates) if logarithmic else estimates
    back = exponential if logarithmic else float
    if len(values) < 2:
        return Interval(back(float(values.mean())), math.nan, math.nan)
    low, high = mean_bounds(values[None], alpha)
    return Interval(back(float(values.mean())), back(float(low[0])), back(float(high[0])))


def _binomial(successes: float, trials: float, alpha: float) -> Interval:
    low = float(special.betaincinv(successes, trials - successes + 1, alpha / 2)) if successes > 0 else 0.0
    failures = trials - successes
    high = float(special.betaincinv(successes + 1, failures, 1 - alpha / 2)) if failures > 0 else 1.0
    return Interval(successes / trials, low, high)


def exponential(logarithm: float) -> float:
    """Return the exponential of a number, or infinity if it overflows."""
    return math.inf if logarithm >= _LARGEST else math.exp(logarithm)
