"""Results of measures: single numbers and curves with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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
        low: Lower end of the interval, None without an interval.
        high: Upper end of the interval, None without an interval.
        at: Position on the horizontal axis of a curve, None for a single number.
    """

    value: float
    low: float | None = None
    high: float | None = None
    at: float | None = None

    @classmethod
    def from_interval(cls, found: Interval, at: float | None = None) -> Point:
        """Convert an interval, whose ends may be NaN, to a point."""
        low, high = (None if math.isnan(end) else float(end) for end in found[1:])
        return cls(float(found.estimate), low, high, at)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A single number or a curve.

    Args:
        name: Name of the quantity.
        points: One point for a single number, several for a curve.
        unit: Unit of the values.
        along: Label of the horizontal axis, empty for a single number.
        exact: Value for a perfect model, if known.
    """

    name: str
    points: tuple[Point, ...]
    unit: str = ""
    along: str = ""
    exact: float | None = None

    def point_label(self, point: Point) -> str:
        """Return the name of the quantity with the position of one of its points."""
        return self.name if point.at is None else f"{self.name}, {self.along}: {point.at:g}"

    def record(self) -> dict[str, Any]:
        """Return the quantity as JSON values.

        Raises:
            InputError: If a value is not finite. The error names the field `model`.
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
        """Create a quantity from the result of `record`.

        Raises:
            InputError: If the record has missing or unknown keys.
        """
        try:
            return cls(**{**record, "points": tuple(Point(**point) for point in record["points"])})
        except (TypeError, KeyError) as error:
            raise InputError("quantity", record, "the record is invalid. Inspect the model again") from error


def single_quantity(name: str, point: Point, *, unit: str = "", exact: float | None = None) -> Quantity:
    """Return a quantity with a single point."""
    return Quantity(name=name, points=(point,), unit=unit, exact=exact)


def curve_quantity(
    name: str, points: Iterable[Point], along: str, *, unit: str = "", exact: float | None = None
) -> Quantity:
    """Return a quantity that is a curve."""
    return Quantity(name=name, points=tuple(points), unit=unit, along=along, exact=exact)


def share_point(values: NDArray[np.float64], at: float | None = None) -> Point:
    """Return the mean of values (n,) between 0 and 1, with the interval of `share_bounds`."""
    low, high = share_bounds(values[None], 1 - LEVEL)
    return Point(float(values.mean()), max(float(low[0]), 0.0), min(float(high[0]), 1.0), at)


def mean_point(values: NDArray[np.float64], at: float | None = None) -> Point:
    """Return the mean of independent values (n,) with Student's interval."""
    low, high = mean_bounds(values[None], 1 - LEVEL) if len(values) > 1 else ([math.nan], [math.nan])
    return Point.from_interval(Interval(float(values.mean()), float(low[0]), float(high[0])), at)


def mean_of_points(points: Sequence[Point]) -> Point:
    """Return the mean of independent estimates, with an interval computed from their intervals.

    The result has no interval if one of the points has none.

    References:
        Zou and Donner (2008), method of variance estimates recovery.
    """
    value = float(np.mean([point.value for point in points]))
    if any(point.low is None or point.high is None for point in points):
        return Point(value)
    below = math.hypot(*(point.value - float(point.low or 0) for point in points)) / len(points)
    above = math.hypot(*(float(point.high or 0) - point.value for point in points)) / len(points)
    return Point(value, value - below, value + above)


def bootstrap_point(
    statistic: Callable[[NDArray[np.int64]], float], rows: int, seed: int, at: float | None = None
) -> Point:
    """Return a statistic with its percentile bootstrap interval (Efron 1979).

    The result has no interval if the statistic is equal in all resamples.

    Args:
        statistic: Function of row indices, shape (rows,).
        rows: Number of rows.
        seed: Random seed of the resamples.
        at: Position of the point on a curve.
    """
    random = numpy_generator(seed, "bootstrap")
    value = statistic(np.arange(rows))
    resamples = [statistic(random.integers(0, rows, rows)) for _ in range(_RESAMPLES)]
    finite = [one for one in resamples if math.isfinite(one)]
    if len(finite) < 2 or np.ptp(finite) == 0:
        return Point(float(value), at=at)
    low, high = np.quantile(finite, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Point(float(value), float(low), float(high), at)
