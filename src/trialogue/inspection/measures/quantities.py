"""What a measure gives: quantities with their intervals, single ones or along a distance, a length or a horizon."""

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
"""That of all intervals."""
_RESAMPLES = 400


@dataclass(frozen=True)
class Point:
    """An estimate and the ends of its interval, None where it has none; `at` a place of its curve, if it is of one."""

    value: float
    low: float | None = None
    high: float | None = None
    at: float | None = None

    @classmethod
    def of(cls, found: Interval, at: float | None = None) -> Point:
        """The point of an estimate whose ends are NaN where there are none."""
        low, high = (None if math.isnan(end) else float(end) for end in found[1:])
        return cls(float(found.estimate), low, high, at)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number by its `name` in `unit`, or, `along` something, a curve; `exact` is what a perfect one would be."""

    name: str
    points: tuple[Point, ...]
    unit: str = ""
    along: str = ""
    exact: float | None = None

    def told(self, point: Point) -> str:
        """What one of its points is: its name, and the place on the curve."""
        return self.name if point.at is None else f"{self.name}, {self.along}: {point.at:g}"

    def record(self) -> dict[str, Any]:
        """As JSON holds it; raises `InputError`, of the model, for what is no finite number."""
        for point in self.points:
            if not all(math.isfinite(end) for end in (point.value, point.low, point.high) if end is not None):
                raise InputError("model", point.value, f"it gives no finite number for {self.name!r}")
        points = [
            {key: value for key, value in vars(point).items() if value is not None} for point in self.points
        ]
        return {**vars(self), "points": points}

    @classmethod
    def read(cls, record: dict[str, Any]) -> Quantity:
        """What `record` wrote; raises `InputError` for anything else."""
        try:
            return cls(**{**record, "points": tuple(Point(**point) for point in record["points"])})
        except (TypeError, KeyError) as error:
            raise InputError("quantity", record, "it is none: inspect the model anew") from error


def number(name: str, point: Point, *, unit: str = "", exact: float | None = None) -> Quantity:
    """The quantity of a single number."""
    return Quantity(name=name, points=(point,), unit=unit, exact=exact)


def curve(
    name: str, points: Iterable[Point], along: str, *, unit: str = "", exact: float | None = None
) -> Quantity:
    """Return the quantity whose `points` have places `along` something."""
    return Quantity(name=name, points=tuple(points), unit=unit, along=along, exact=exact)


def share(values: NDArray[np.float64], at: float | None = None) -> Point:
    """Return the mean of shares `values` (rows,), from 0 to 1, with the interval of `share_bounds`."""
    low, high = share_bounds(values[None], 1 - LEVEL)
    return Point(float(values.mean()), max(float(low[0]), 0.0), min(float(high[0]), 1.0), at)


def mean(values: NDArray[np.float64], at: float | None = None) -> Point:
    """The mean of independent `values` (rows,) with Student's interval."""
    low, high = mean_bounds(values[None], 1 - LEVEL) if len(values) > 1 else ([math.nan], [math.nan])
    return Point.of(Interval(float(values.mean()), float(low[0]), float(high[0])), at)


def combined(points: Sequence[Point]) -> Point:
    """The mean of independent `points`, with an interval by those of each (Zou and Donner 2008).

    It has none where one of them has none.
    """
    value = float(np.mean([point.value for point in points]))
    if any(point.low is None or point.high is None for point in points):
        return Point(value)
    below = math.hypot(*(point.value - float(point.low or 0) for point in points)) / len(points)
    above = math.hypot(*(float(point.high or 0) - point.value for point in points)) / len(points)
    return Point(value, value - below, value + above)


def resampled(
    statistic: Callable[[NDArray[np.int64]], float], rows: int, seed: int, at: float | None = None
) -> Point:
    """`statistic` of the row numbers (rows,), with the interval of draws of rows with replacement (Efron 1979).

    Where all draws agree they tell no interval.
    """
    random = numpy_generator(seed, "bootstrap")
    value = statistic(np.arange(rows))
    drawn = [statistic(random.integers(0, rows, rows)) for _ in range(_RESAMPLES)]
    known = [one for one in drawn if math.isfinite(one)]
    if len(known) < 2 or np.ptp(known) == 0:
        return Point(float(value), at=at)
    low, high = np.quantile(known, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Point(float(value), float(low), float(high), at)
