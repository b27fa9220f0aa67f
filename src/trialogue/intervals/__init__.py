"""Intervals of means over independent replications; see `trialogue.intervals.bounds`."""

from typing import NamedTuple


class Interval(NamedTuple):
    """An estimate and its interval; NaN where there is none."""

    estimate: float
    low: float
    high: float
