"""Intervals over independent replications, and what they decide.

The unit is the replication. Numbers, or logarithms of numbers, have the bounds of `mean_bounds`, which widen Student's
interval by the skewness of the sample. Shares have those of `share_bounds`. Only trials that are declared identically
distributed are pooled over replications.
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
    """A share as what it counts: `successes` among `trials`, both one number per replication.

    `identical` declares that all trials of all replications are independent and have the same probability, as in a
    simulation of one fixed distribution. Only then may trials be pooled. Trials of different trainings or texts are
    not identical, even if all of them succeeded.
    """

    successes: Any
    trials: Any
    identical: bool = False


def shares_of(shares: Any, trials: int, *, identical: bool = False) -> Counts:
    """Return the counts of `shares`, one per replication, of this many `trials` each."""
    return Counts((shares * trials).round(), shares * 0 + trials, identical)


def interval(
    estimates: NDArray[np.floating[Any]],
    alpha: float,
    *,
    logarithmic: bool = False,
    counts: Counts | None = None,
) -> Interval:
    """Return the estimate and the interval at level 1 - `alpha` of independent replications.

    Args:
        estimates: One number per replication (n,).
        alpha: Two-sided level.
        logarithmic: Whether the numbers are averaged by their logarithms. The estimate is then the geometric mean.
        counts: Successes and trials of each replication, if the numbers are shares. Trials are pooled, and their
            interval is Clopper and Pearson's, only if `counts.identical` is true.

    Returns:
        The interval. Its ends are NaN for a single number, or for equal numbers that are not shares: replications that
        agree do not show how much others would differ.
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
    """Return the exponential, infinite where it overflows: an end of an interval of logarithms can be anywhere."""
    return math.inf if logarithm >= _LARGEST else math.exp(logarithm)
