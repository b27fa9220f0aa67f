"""Confidence bounds of means over independent replications, vectorised over samples.

`mean_bounds` widens Student's interval according to the skewness of the sample. `share_bounds` is for numbers between 0
and 1. `benchmarks/interval_coverage.py` simulates the coverage of both and writes `docs/interval-coverage.md`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Samples = NDArray[np.floating[Any]]
"""Independent samples (m, n), each of n replications."""

# Constants of `widening`, fitted by simulation. From 4 replications on, the interval misses the mean of normal,
# exponential and lognormal numbers (standard deviation 1 of the logarithm) at most about 1.35 times as often as its
# level, and it is only slightly wider for normal numbers.
_SLOPE, _EXPECTED, _OFFSET = 0.41, 5.1, 6.8
_LARGEST, _LARGEST_EDGEWORTH = 3.65, 4.7

_ITERATIONS = 20
_MOST_NUMBERS = 2**21
"""Largest number of entries in one array of `_largest_mean`."""


def critical_value(replications: int, alpha: float) -> float:
    """Return the two-sided critical value of Student's t distribution with `replications` - 1 degrees of freedom.

    Args:
        replications: Number of independent replications, at least 2.
        alpha: Significance level. The confidence level is 1 - `alpha`.
    """
    return -float(special.stdtrit(replications - 1, alpha / 2))


def widening(skewness: Samples, replications: int, alpha: float) -> Samples:
    """Return the factor by which the upper half of Student's confidence interval is widened.

    A sample from a distribution with a long right tail often contains no values of the tail, so that
    Student's interval lies below the true mean. The factor increases with the sample skewness, and decreases
    to 1 with the number of replications.

    Args:
        skewness: Sample skewness (m,) of m samples. Use its negative for the lower half of the interval.
        replications: Number of replications n per sample, at least 2.
        alpha: Two-sided significance level. The confidence level is 1 - `alpha`.

    Returns:
        Factors (m,), at least 1.
    """
    root, t = math.sqrt(replications), critical_value(replications, alpha)
    largest = min(_LARGEST * (1 - 1 / replications) - 1, _LARGEST_EDGEWORTH * t / root)
    return 1 + np.clip(_SLOPE * (root * skewness - _EXPECTED * root / t + _OFFSET), 0, largest)


def mean_bounds(samples: Samples, alpha: float) -> tuple[Samples, Samples]:
    """Compute confidence bounds of means by Student's t interval, widened for skewed samples.

    Args:
        samples: Array (m, n) of m samples with n replications each.
        alpha: Two-sided significance level. The confidence level is 1 - `alpha`.

    Returns:
        Lower and upper bounds, each (m,). NaN for samples whose values are all equal.
    """
    n = samples.shape[1]
    mean = samples.mean(axis=1)
    deviations = samples - mean[:, None]
    variance = np.where(np.ptp(samples, axis=1) > 0, np.square(deviations).mean(axis=1), math.nan)
    skewness = (deviations**3).mean(axis=1) / variance**1.5
    half = critical_value(n, alpha) * np.sqrt(variance / (n - 1))
    low = mean - half * widening(-skewness, n, alpha)
    return low, mean + half * widening(skewness, n, alpha)


def share_bounds(samples: Samples, alpha: float) -> tuple[Samples, Samples]:
    """Compute confidence bounds of means of shares, which are numbers from 0 to 1.

    The bounds of `mean_bounds` are used if they lie strictly between 0 and 1 and no replication has the share
    0 or 1. Otherwise the bounds are Gaffke's, which only assume that shares are between 0 and 1. If every
    share is 0 or 1, these equal the bounds of Clopper and Pearson.

    Args:
        samples: Shares (m, n) of n replications each.
        alpha: Two-sided level. The confidence level is 1 - `alpha`.

    Returns:
        Lower and upper bounds, each (m,).

    References:
        Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
        variable", 2005. Learned-Miller and Thomas, "A new confidence interval for the mean of a bounded
        random variable", 2019, who conjecture that the bounds have the nominal coverage for every
        distribution.
    """
    low, high = mean_bounds(samples, alpha) if samples.shape[1] > 1 else np.full((2, len(samples)), math.nan)
    shares_inside = (samples.min(axis=1) > 0) & (samples.max(axis=1) < 1)
    inside = shares_inside & (low > 0) & (high < 1)
    if not inside.all():
        low, high = low.copy(), high.copy()
        low[~inside] = 1 - _largest_mean(1 - samples[~inside], alpha / 2)
        high[~inside] = _largest_mean(samples[~inside], alpha / 2)
    return low, high


def _largest_mean(samples: Samples, alpha: float) -> Samples:
    """Return Gaffke's upper confidence bound (m,) of the mean of each sample.

    It is the 1 - `alpha` quantile of the mean of the sample and the value 1 with random Dirichlet weights.
    """
    m, n = samples.shape
    most = max(1, _MOST_NUMBERS // (n + 1))
    if m > most:
        parts = [_largest_mean(samples[start : start + most], alpha) for start in range(0, m, most)]
        return np.concatenate(parts)
    points = np.concatenate([np.sort(samples, axis=1), np.ones((m, 1))], axis=1)
    # The n-th root of the probability is close to linear, and exactly linear if all shares are 0. Its root is found by
    # the Illinois method, which halves the value at an end of the bracket that stays twice.
    low, high = points[:, 0], np.ones(m)
    at_low, at_high = np.full(m, 1 - alpha ** (1 / n)), np.full(m, -(alpha ** (1 / n)))
    last = np.zeros(m)
    for _ in range(_ITERATIONS):
        middle = low + (high - low) * at_low / (at_low - at_high)
        at_middle = _mean_exceeds(points, middle) ** (1 / n) - alpha ** (1 / n)
        is_below = at_middle > 0
        at_low = np.where(is_below, at_middle, np.where(last < 0, at_low / 2, at_low))
        at_high = np.where(is_below, np.where(last > 0, at_high / 2, at_high), at_middle)
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        last = np.where(is_below, 1.0, -1.0)
    return middle


def _mean_exceeds(points: Samples, value: Samples) -> Samples:
    """Return the probability (m,) that the mean of sorted `points` (m, k) with random weights exceeds `value` (m,).

    The weights have a uniform Dirichlet distribution. The probability is computed by the recursion of
    B-splines.
    """
    value = value[:, None]
    exceeds = (points > value).astype(np.float64)
    for order in range(1, points.shape[1]):
        first, last = points[:, :-order], points[:, order:]
        gap = last - first
        weight = np.clip((value - first) / np.where(gap > 0, gap, 1.0), 0, 1)
        exceeds = weight * exceeds[:, :-1] + (1 - weight) * exceeds[:, 1:]
    return exceeds[:, 0]
