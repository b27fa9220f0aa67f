"""Results of measures: single numbers and curves with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.errors import InputError
from trialogue.intervals import Interval
from trialogue.intervals.bounds import mean_bounds, share_bounds
from trialogue.randomness import numpy_generator

LEVEL = 0.95
"""Confidence level of all intervals."""
_RESAMPLES = 400


@dataclass(frozen=True)
class Point:
    """An estimate with its confidence interval.

    Args:
        value: The estimate.
        low: Lower end of the 95% confidence interval. None if there is no interval.
        high: Upper end of the 95% confidence interval. None if there is no interval.
        at: Position on the horizontal axis, if the point belongs to a curve. None if the estimate is a single
            number.
    """

    value: float
    low: float | None = None
    high: float | None = None
    at: float | None = None

    @classmethod
    def from_interval(cls, found: Interval, at: float | None = None) -> Point:
        """Create a point from an interval.

        Args:
            found: Estimate with the ends of its interval. An end that is NaN becomes None.
            at: Position on the horizontal axis, or None for a single number.
        """
        low, high = (None if math.isnan(end) else float(end) for end in found[1:])
        return cls(float(found.estimate), low, high, at)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A named result of a measure, which is a single number or a curve.

    Args:
        name: Name of the quantity.
        points: One point for a single number. For a curve, one point per position on the horizontal axis.
        unit: Unit of the values. Empty if they have none.
        along: Label of the horizontal axis of a curve. Empty for a single number.
        exact: Value that a perfect model would have, or None if it is unknown.
        finding: Sentence that states the value, with `{}` instead of the number and without a full stop. Empty if
            the quantity is not the most important one of its measure.
        lists_points: Whether short tables list all points of a curve, instead of one.
    """

    name: str
    points: tuple[Point, ...]
    unit: str = ""
    along: str = ""
    exact: float | None = None
    finding: str = ""
    lists_points: bool = False

    def point_label(self, point: Point) -> str:
        """Return a label for one point of this quantity.

        Args:
            point: One of `points`.

        Returns:
            The name of the quantity. For a point of a curve, the axis label and the position follow, as in
            "loss, tokens of context: 16".
        """
        return self.name if point.at is None else f"{self.name}, {self.along}: {point.at:g}"

    def record(self) -> dict[str, Any]:
        """Convert the quantity to a dictionary that can be written as JSON.

        Returns:
            The fields of the quantity. Each point is a dictionary of its fields that are not None.

        Raises:
            InputError: If a value or an end of an interval is not finite. The error names the field `model`.
        """
        for point in self.points:
            if not all(math.isfinite(end) for end in (point.value, point.low, point.high) if end is not None):
                raise InputError("model", point.value, f"{self.name!r} is not finite for this model")
        points = [
            {key: value for key, value in vars(point).items() if value is not None} for point in self.points
        ]
        return {**vars(self), "points": points}

    @classmethod
    def read(cls, record: dict[str, Any]) -> Quantity:
        """Create a quantity from a dictionary of JSON values.

        Args:
            record: Dictionary in the format of `record`.

        Raises:
            InputError: If the dictionary has missing or unknown keys.
        """
        try:
            return cls(**{**record, "points": tuple(Point(**point) for point in record["points"])})
        except (TypeError, KeyError) as error:
            raise InputError("quantity", record, "the record is invalid. Inspect the model again") from error


def single_quantity(
    name: str, point: Point, *, unit: str = "", exact: float | None = None, finding: str = ""
) -> Quantity:
    """Create a quantity that is a single number.

    Args:
        name: Name of the quantity.
        point: The number with its interval.
        unit: Unit of the number. Empty if it has none.
        exact: Value that a perfect model would have, or None if it is unknown.
        finding: Sentence that states the value, with `{}` instead of the number. Empty if there is none.
    """
    return Quantity(name=name, points=(point,), unit=unit, exact=exact, finding=finding)


def curve_quantity(
    name: str, points: Iterable[Point], along: str, *, unit: str = "", exact: float | None = None
) -> Quantity:
    """Create a quantity that is a curve.

    Args:
        name: Name of the quantity.
        points: Points of the curve, each with its position `at` on the horizontal axis.
        along: Label of the horizontal axis.
        unit: Unit of the values. Empty if they have none.
        exact: Value that a perfect model would have at every position, or None if it is unknown.
    """
    return Quantity(name=name, points=tuple(points), unit=unit, along=along, exact=exact)


def share_point(values: NDArray[np.float64], at: float | None = None) -> Point:
    """Estimate a mean of values between 0 and 1, with its 95% confidence interval.

    Args:
        values: Independent values between 0 and 1, shape (n,).
        at: Position of the point on a curve, or None for a single number.

    Returns:
        The mean with the interval of `trialogue.intervals.bounds.share_bounds`.
    """
    low, high = share_bounds(values[None], 1 - LEVEL)
    return Point(float(values.mean()), max(float(low[0]), 0.0), min(float(high[0]), 1.0), at)


def mean_point(
    values: NDArray[np.float64], at: float | None = None, *, lowest: float = -math.inf, intervals: int = 1
) -> Point:
    """Estimate a mean with the 95% confidence interval of Student's t distribution.

    Args:
        values: Independent values, shape (n,).
        at: Position of the point on a curve, or None for a single number.
        lowest: Smallest possible value, at which the interval is cut off (default: none).
        intervals: Number of intervals that contain their means together with the confidence level, by the correction
            of Bonferroni (default: 1).

    Returns:
        The mean with its interval. A single value has no interval.
    """
    alpha = (1 - LEVEL) / intervals
    low, high = mean_bounds(values[None], alpha) if len(values) > 1 else ([math.nan], [math.nan])
    first = max(float(low[0]), lowest) if len(values) > 1 else math.nan
    return Point.from_interval(Interval(float(values.mean()), first, float(high[0])), at)


def mean_of_points(points: Sequence[Point]) -> Point:
    """Average independent estimates, and compute an interval for the average from their intervals.

    The distance from the average to each end is the root mean square of the distances of the single estimates,
    divided by the square root of their number.

    Args:
        points: Independent estimates.

    Returns:
        The average. It has no interval if one of the estimates has none.

    References:
        Zou and Donner (2008), method of variance estimates recovery.
    """
    value = float(np.mean([point.value for point in points]))
    if any(point.low is None or point.high is None for point in points):
        return Point(value)
    below = math.hypot(*(point.value - float(point.low or 0) for point in points)) / len(points)
    above = math.hypot(*(float(point.high or 0) - point.value for point in points)) / len(points)
    return Point(value, value - below, value + above)


def combine_quantities(results: Sequence[Sequence[Quantity]]) -> list[Quantity]:
    """Combine the results of one measure for several models.

    The combined value is the median. The interval contains the values and the intervals of all models, so it includes
    the differences between the models. Quantities and points that some model lacks are left out.

    Args:
        results: Quantities of each model.

    Returns:
        The combined quantities, in the order of the first model.
    """
    combined = []
    for first in results[0]:
        same = [
            one for found in results for one in found if (one.name, one.along) == (first.name, first.along)
        ]
        points = []
        for point in first.points:
            aligned = [other for one in same for other in one.points if other.at == point.at]
            if len(aligned) < len(results):
                continue
            ends = [end for one in aligned for end in (one.value, one.low, one.high) if end is not None]
            low, high = (min(ends), max(ends)) if min(ends) < max(ends) else (None, None)
            points.append(Point(float(np.median([one.value for one in aligned])), low, high, point.at))
        if points:
            combined.append(replace(first, points=tuple(points)))
    return combined


def bootstrap_point(
    statistic: Callable[[NDArray[np.int64]], float], rows: int, seed: int, at: float | None = None
) -> Point:
    """Compute a statistic with its 95% percentile bootstrap interval (Efron 1979).

    Args:
        statistic: Function that computes the statistic from the selected rows of a sample. Its argument is an
            array of row indices, shape (rows,), in which rows may repeat.
        rows: Number of rows of the sample.
        seed: Random seed of the resamples.
        at: Position of the point on a curve, or None for a single number.

    Returns:
        The statistic of all rows with its interval. It has no interval if the statistic is equal in all
        resamples.
    """
    random = numpy_generator(seed, "bootstrap")
    value = statistic(np.arange(rows))
    resamples = [statistic(random.integers(0, rows, rows)) for _ in range(_RESAMPLES)]
    finite = [one for one in resamples if math.isfinite(one)]
    if len(finite) < 2 or np.ptp(finite) == 0:
        return Point(float(value), at=at)
    low, high = np.quantile(finite, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Point(float(value), float(low), float(high), at)
