"""Statistical power of a run, the smallest effect that it could have detected, and the replications it would need.

The first two replace the observed standard deviation by its upper confidence limit, because the standard deviation of a
small sample is usually too small.
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
"""Probability of a decision at the smallest detectable effect."""

CONFIDENCE = 0.9
"""Confidence of the upper limit of the standard deviation (Browne 1995 uses 0.8)."""

FEWEST = 3
"""Smallest number of pilot estimates. Two estimates can be almost equal by chance."""

MOST = 10_000
"""Largest number of replications that is considered for a decision."""

_SAMPLES = 2000
"""Number of simulated samples over which the power is averaged."""

_FEWER_SAMPLES, _NUMBERS = 500, 100_000
"""Number of samples and largest number of values in all of them, for the approximate `replications_to_decide`."""


def power(criterion: Criterion, pilot: NDArray[np.floating[Any]], replications: int, alpha: float) -> float:
    """Estimate the probability that a run will decide a claim, either way.

    A run decides a claim if its confidence interval lies entirely on one side of the threshold. The estimates
    are assumed to be normal, and their standard deviation is the upper confidence limit of the pilot's.

    Args:
        criterion: Statistic and threshold of the claim.
        pilot: Estimates of a small trial run, one per replication (k,).
        replications: Number of replications (independent repetitions) of the run.
        alpha: Two-sided error rate of the run's interval.

    Returns:
        The probability. NaN if the pilot has fewer than `FEWEST` estimates, only equal estimates, or
        estimates that are not finite.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(pilot) if criterion.statistic.logarithmic else pilot
    if len(values) < FEWEST or replications < 2 or not np.isfinite(values).all() or np.ptp(values) == 0:
        return math.nan
    mean, deviation = float(values.mean()), _largest_deviation(values)
    return _compute_decision_probability(
        mean, deviation, _compute_region(criterion), replications, alpha, pilot=len(values)
    )


def smallest_effect(criterion: Criterion, estimates: NDArray[np.floating[Any]], alpha: float) -> float:
    """Return the smallest true distance from the threshold that a run like this one would detect.

    "Detect" means that the confidence interval excludes the threshold with probability `POWER`.

    Args:
        criterion: Statistic and threshold of the claim.
        estimates: Estimates of the run, one per replication (n,).
        alpha: Two-sided error rate of the run's interval.

    Returns:
        The distance in units of the statistic, or a factor if the statistic is logarithmic. For the direction "equal",
        the smallest margin that could be confirmed if there were no difference. NaN for fewer than two estimates or
        equal estimates.
    """
    values = np.log(estimates) if criterion.statistic.logarithmic else estimates
    if len(values) < 2 or np.ptp(values) == 0:
        return math.nan
    n, deviation = len(values), _largest_deviation(values)

    def excess(effect: float) -> float:
        if criterion.direction == "equal":
            return _compute_decision_probability(0.0, deviation, (-effect, effect), n, alpha) - POWER
        return _compute_decision_probability(effect, deviation, (0.0, math.inf), n, alpha) - POWER

    # This is an upper bound of the solution, because Student's interval is widened less than fourfold.
    largest = deviation / math.sqrt(n) * (critical_value(n, alpha) + 3) * 12
    effect = float(brentq(excess, 0.0, largest, xtol=1e-6 * largest))
    return exponential(effect) if criterion.statistic.logarithmic else effect


def replications_to_decide(
    criterion: Criterion, estimates: NDArray[np.floating[Any]], alpha: float
) -> int | None:
    """Return the number of replications with which a larger run would decide a claim with probability `POWER`.

    The true mean and standard deviation are assumed to be those of the estimates.

    Args:
        criterion: Statistic and threshold of the claim.
        estimates: Estimates of the run, one per replication (n,).
        alpha: Two-sided error rate of the larger run's interval.

    Returns:
        The smallest number above n. None if it exceeds `MOST`, or if the estimates do not vary.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(estimates) if criterion.statistic.logarithmic else estimates
    if len(values) < 2 or not np.isfinite(values).all() or np.ptp(values) == 0:
        return None
    mean, deviation, region = float(values.mean()), float(values.std(ddof=1)), _compute_region(criterion)

    def decides(replications: int) -> bool:
        samples = min(_FEWER_SAMPLES, _NUMBERS // replications)
        return (
            _compute_decision_probability(mean, deviation, region, replications, alpha, samples=samples)
            >= POWER
        )

    too_few, enough = len(values), MOST
    if too_few >= enough or not decides(enough):
        return None
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if decides(middle) else (middle, enough)
    return enough


def _largest_deviation(values: NDArray[np.floating[Any]]) -> float:
    """Return the upper confidence limit of the standard deviation of normal `values`."""
    degrees = len(values) - 1
    return float(values.std(ddof=1)) * math.sqrt(degrees / special.chdtri(degrees, CONFIDENCE))


def _compute_region(criterion: Criterion) -> tuple[float, float]:
    """Return the interval of means that meet the criterion (of logarithms, if the statistic is logarithmic)."""
    if not criterion.statistic.logarithmic:
        return criterion.region
    bottom, top = criterion.region
    return (math.log(bottom) if bottom > 0 else -math.inf), math.log(top) if top > 0 else -math.inf


@cache
def _simulate_widths(
    replications: int, alpha: float, count: int
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Simulate normal samples, and return the distances from their means to both ends of the confidence interval."""
    samples = numpy_generator(0, "power of an interval", replications).normal(size=(count, replications))
    low, high = mean_bounds(samples, alpha)
    mean = samples.mean(axis=1)
    return mean - low, high - mean


def _compute_decision_probability(
    mean: float,
    deviation: float,
    region: tuple[float, float],
    replications: int,
    alpha: float,
    pilot: float = math.inf,
    samples: int = _SAMPLES,
) -> float:
    """Return the probability that a confidence interval lies entirely inside or entirely outside `region`.

    The sample is normal. For a given interval width, the probability has a closed form. It is averaged over simulated
    widths, because mean and width of a normal sample are independent.
    """
    below, above = (deviation * width for width in _simulate_widths(replications, alpha, samples))
    error = deviation * math.sqrt(1 / replications + 1 / pilot)
    bottom, top = region
    inside = special.ndtr((top - above - mean) / error) - special.ndtr((bottom + below - mean) / error)
    outside = special.ndtr((bottom - above - mean) / error) + special.ndtr((mean - top - below) / error)
    return float(np.mean(np.maximum(inside, 0) + outside))
