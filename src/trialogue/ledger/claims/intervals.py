"""Intervals over independent replications, what they decide, and how probable a decision was.

Student's interval is over the replications' numbers, or their logarithms; where all replications of a share agree it
has no width, and the exact binomial interval (Clopper and Pearson) over all trials takes its place.
"""

import math
import sys
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from scipy.integrate import quad
from scipy.optimize import brentq

from trialogue.ledger.claims.quantities import Counts, Criterion

Decision = Literal["holds", "refuted", "undecided"]
_LARGEST = math.log(sys.float_info.max)
POWER = 0.8
"""The power at which the smallest effect that could have been seen is stated."""


class Interval(NamedTuple):
    """An estimate and its interval; NaN where there is none."""

    estimate: float
    low: float
    high: float


def decide(low: float, high: float, criterion: Criterion) -> Decision:
    """Hold the interval `low..high` against the criterion's region: inside, outside, or across its edge."""
    bottom, top = criterion.region
    if criterion.direction == "above":
        inside, outside = low > bottom, high <= bottom
    elif criterion.direction == "below":
        inside, outside = high < top, low >= top
    else:
        inside, outside = bottom <= low and high <= top, high < bottom or low > top
    return "holds" if inside else "refuted" if outside else "undecided"


def interval(
    estimates: NDArray[np.floating[Any]],
    alpha: float,
    *,
    logarithmic: bool = False,
    counts: Counts | None = None,
) -> Interval:
    """Estimate and interval at level 1 - `alpha` of independent `estimates` (n,).

    Of `logarithmic` estimates it is the geometric mean and the interval of the logarithms. Estimates that are all
    equal, or a single one, give an interval only where they are shares of which the `counts` are known.
    """
    if counts is not None and np.ptp(estimates) == 0:
        return _binomial(float(counts.successes.sum()), float(counts.trials.sum()), alpha)
    values = np.log(estimates) if logarithmic else estimates
    back = _exp if logarithmic else float
    mean = float(values.mean())
    if len(values) < 2 or np.ptp(values) == 0:
        return Interval(back(mean), math.nan, math.nan)
    half = _critical(len(values), alpha) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return Interval(back(mean), back(mean - half), back(mean + half))


def _binomial(successes: float, trials: float, alpha: float) -> Interval:
    low = float(special.betaincinv(successes, trials - successes + 1, alpha / 2)) if successes > 0 else 0.0
    failures = trials - successes
    high = float(special.betaincinv(successes + 1, failures, 1 - alpha / 2)) if failures > 0 else 1.0
    return Interval(successes / trials, low, high)


def _exp(logarithm: float) -> float:
    """The exponential, infinite where it overflows: two replications can leave an end anywhere."""
    return math.exp(logarithm) if logarithm < _LARGEST else math.inf


def _critical(replications: int, alpha: float) -> float:
    return -float(special.stdtrit(replications - 1, alpha / 2))


def _region(criterion: Criterion) -> tuple[float, float]:
    """The criterion's region on the scale on which estimates are normal."""
    if not criterion.quantity.logarithmic:
        return criterion.region
    bottom, top = criterion.region
    return (math.log(bottom) if bottom > 0 else -math.inf), math.log(top) if top > 0 else -math.inf


def power(criterion: Criterion, pilot: NDArray[np.floating[Any]], replications: int, alpha: float) -> float:
    """Probability that so many `replications` decide the criterion, if the `pilot`'s estimates (n,) are right.

    Estimates, or their logarithms, are taken as normal with the pilot's mean and deviation. NaN for a pilot of fewer
    than two estimates, or one whose estimates are all equal.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(pilot) if criterion.quantity.logarithmic else pilot
    if len(values) < 2 or replications < 2 or not np.isfinite(values).all() or np.ptp(values) == 0:
        return math.nan
    return _decided(float(values.mean()), float(values.std(ddof=1)), _region(criterion), replications, alpha)


def _decided(
    mean: float, deviation: float, region: tuple[float, float], replications: int, alpha: float
) -> float:
    """Probability that Student's interval lies inside or outside of `region`.

    The mean and the variance of a normal sample are independent, so that the probability given the deviation is
    averaged over the law of the deviation, a chi law: in it, and not in quantiles, the probability is smooth.
    """
    error = deviation / math.sqrt(replications)
    bottom, top = region
    critical, degrees = _critical(replications, alpha), replications - 1
    slope = critical / math.sqrt(degrees)
    scale = (degrees / 2 - 1) * math.log(2) + math.lgamma(degrees / 2)

    def given_deviation(chi: float) -> float:
        half = error * slope * chi
        below, above = ((edge - mean) / error for edge in (bottom - half, top + half))
        first, last = ((edge - mean) / error for edge in (bottom + half, top - half))
        inside = max(0.0, float(special.ndtr(last) - special.ndtr(first)))
        decided = inside + float(special.ndtr(below) + special.ndtr(-above))
        return decided * math.exp((degrees - 1) * math.log(chi) - chi**2 / 2 - scale)

    ends = [math.sqrt(2 * float(special.gammaincinv(degrees / 2, share))) for share in (1e-12, 1 - 1e-12)]
    # Where an end of the interval meets an edge of the region the probability changes, within a few standard errors.
    turns = [abs(edge - mean) / (error * slope) for edge in region if math.isfinite(edge)]
    near = {turn + errors / slope for turn in (0.0, *turns) for errors in (-4, -1, 0, 1, 4)}
    inner = sorted(point for point in near if ends[0] < point < ends[1])
    return float(quad(given_deviation, *ends, points=inner or None, limit=200, epsabs=1e-7)[0])


def smallest_effect(criterion: Criterion, estimates: NDArray[np.floating[Any]], alpha: float) -> float:
    """The distance from the threshold at which `estimates` (n,) like these decide with probability `POWER`.

    For an equivalence, the margin that could have been confirmed at no difference. A factor where the quantity is
    logarithmic. NaN where the estimates are fewer than two or all equal.
    """
    values = np.log(estimates) if criterion.quantity.logarithmic else estimates
    if len(values) < 2 or np.ptp(values) == 0:
        return math.nan
    n, deviation = len(values), float(values.std(ddof=1))

    def excess(effect: float) -> float:
        if criterion.direction == "equal":
            return _decided(0.0, deviation, (-effect, effect), n, alpha) - POWER
        return _decided(effect, deviation, (0.0, math.inf), n, alpha) - POWER

    largest = deviation / math.sqrt(n) * (_critical(n, alpha) + 3) * 4
    effect = float(brentq(excess, 0.0, largest, xtol=1e-6 * largest))
    return _exp(effect) if criterion.quantity.logarithmic else effect
