"""Confidence intervals of means over independent replications. See `trialogue.intervals.bounds`."""

from typing import NamedTuple


class Interval(NamedTuple):
    """Estimate with its confidence interval.

    Attributes:
        estimate: The estimate, NaN if undefined.
        low: Lower bound, NaN if undefined.
        high: Upper bound, NaN if undefined.
    """

    estimate: float
    low: float
    high: float
