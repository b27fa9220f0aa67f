"""The probability that a run decides a claim, and the smallest effect that it could have seen.

Both take the interval that decides, and both allow for what few numbers leave open: a deviation is replaced by its
upper confidence limit, because the observed deviation of a small sample is too small more often than not.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.optimize import brentq

from trialogue.intervals.bounds import critical_value, mean_bounds
from trialogue.randomness import numpy_generator
from trialogue_lab.ledger.claims.intervals import exponential
from trialogue_lab.ledger.claims.statistics import Criterion

POWER = 0.8
"""The power at which the smallest effect that could have been seen is stated."""

CONFIDENCE = 0.9
"""Confidence of the upper limit that replaces an observed deviation (Browne 1995, who uses 0.8)."""

FEWEST = 3
"""Fewest estimates of a pilot that states a power. Two can agree by chance so closely that no limit helps."""

_SAMPLES = 2000
"""Normal samples over which the widths of the interval are averaged."""


def power(criterion: Criterion, pilot: NDArray[np.floating[Any]], replications: int, alpha: float) -> float:
    """Return the probability that a run decides the criterion, as far as a pilot can tell.

    Numbers, or their logarithms, are taken as normal. Their deviation is the upper limit of the pilot's deviation at
    confidence `CONFIDENCE`, and the probability is averaged over the sampling error of the pilot's mean.

    Args:
        criterion: The criterion to be decided.
        pilot: The pilot's estimates, one per replication (k,).
        replications: Number of replications of the run.
        alpha: Two-sided level of the run's interval.

    Returns:
        The probability. NaN for a pilot with fewer than `FEWEST` estimates, with estimates that are not finite, or
        without spread.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(pilot) if criterion.statistic.logarithmic else pilot
    if len(values) < FEWEST or replications < 2 or not np.isfinite(values).all() or np.ptp(values) == 0:
        return math.nan
    mean, deviation = float(values.mean()), _largest_deviation(values)
    return _decided(mean, deviation, _region(criterion), replications, alpha, pilot=len(values))


def smallest_effect(criterion: Criterion, estimates: NDArray[np.floating[Any]], alpha: float) -> float:
    """Return the distance from the threshold at which a run like this one is decided with probability `POWER`.

    The deviation is the upper limit of the deviation of `estimates` (n,) at confidence `CONFIDENCE`.

    Returns:
        The distance, a factor if the statistic is logarithmic. For an equivalence, the margin that could have been
        confirmed if there were no difference. NaN for fewer than two estimates or estimates without spread.
    """
    values = np.log(estimates) if criterion.statistic.logarithmic else estimates
    if len(values) < 2 or np.ptp(values) == 0:
        return math.nan
    n, deviation = len(values), _largest_deviation(values)

    def excess(effect: float) -> float:
        if criterion.direction == "equal":
            return _decided(0.0, deviation, (-effect, effect), n, alpha) - POWER
        return _decided(effect, deviation, (0.0, math.inf), n, alpha) - POWER

    # Twice the largest widening, and the quantile of normal deviations at which no power is left to gain.
    largest = deviation / math.sqrt(n) * (critical_value(n, alpha) + 3) * 12
    effect = float(brentq(excess, 0.0, largest, xtol=1e-6 * largest))
    return exponential(effect) if criterion.statistic.logarithmic else effect


def _largest_deviation(values: NDArray[np.floating[Any]]) -> float:
    """Upper confidence limit of the deviation of normal `values`."""
    degrees = len(values) - 1
    return float(values.std(ddof=1)) * math.sqrt(degrees / special.chdtri(degrees, CONFIDENCE))


def _region(criterion: Criterion) -> tuple[float, float]:
    """The criterion's region on the scale on which estimates are normal."""
    if not criterion.statistic.logarithmic:
        return criterion.region
    bottom, top = criterion.region
    return (math.log(bottom) if bottom > 0 else -math.inf), math.log(top) if top > 0 else -math.inf


@cache
def _widths(replications: int, alpha: float) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """How far the interval of each of `_SAMPLES` standard normal samples reaches below and above its mean."""
    samples = numpy_generator(0, "power of an interval", replications).normal(size=(_SAMPLES, replications))
    low, high = mean_bounds(samples, alpha)
    mean = samples.mean(axis=1)
    return mean - low, high - mean


def _decided(
    mean: float,
    deviation: float,
    region: tuple[float, float],
    replications: int,
    alpha: float,
    pilot: float = math.inf,
) -> float:
    """Probability that the interval of normal numbers lies inside or outside of `region`.

    The mean of a normal sample is independent of all its differences, and so of the widths of its interval. The
    probability given the widths is a closed form, which is averaged over simulated widths. `pilot` is the number of
    replications from which `mean` was estimated.
    """
    below, above = (deviation * width for width in _widths(replications, alpha))
    error = deviation * math.sqrt(1 / replications + 1 / pilot)
    bottom, top = region
    inside = special.ndtr((top - above - mean) / error) - special.ndtr((bottom + below - mean) / error)
    outside = special.ndtr((bottom - above - mean) / error) + special.ndtr((mean - top - below) / error)
    return float(np.mean(np.maximum(inside, 0) + outside))
