"""What makes numbers a distribution: none is negative, and they sum to one; the only place where this is asked."""

from typing import Any

from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError

SINGLE = 1e-6
"""How far from one single precision leaves a sum."""


def checked_probabilities(
    field: str,
    values: Any,
    shape: tuple[int, ...],
    *,
    tolerance: float = SINGLE,
    hint: str = "give non-negative probabilities that sum to one",
) -> Tensor:
    """`values` as float64 of `shape` (..., k), distributions over the last dimension, as they are.

    Raises `InputError`, which names `field` and ends with `hint`, for another shape, for negative numbers and NaN, and
    for sums further than `tolerance` from one.
    """
    numbers = real_tensor(field, values, f"{hint}, of the shape {shape}")
    if numbers.shape != shape:
        raise InputError(field, tuple(numbers.shape), f"{hint}, of the shape {shape}")
    sums = numbers.sum(-1)
    # What is not a number compares as false.
    right = (numbers >= 0).all(-1) & ((sums - 1).abs() <= tolerance)
    if not bool(right.all()):
        distribution, total = numbers[~right][0], sums[~right][0]
        wrong = distribution[~(distribution >= 0)]
        raise InputError(field, float(wrong[0] if len(wrong) else total), hint)
    return numbers


def checked_law(field: str, values: Any, shape: tuple[int, ...], *, tolerance: float = SINGLE) -> Tensor:
    """What `checked_probabilities` gives, divided by the sums: what rounding left is divided out."""
    numbers = checked_probabilities(field, values, shape, tolerance=tolerance)
    return numbers / numbers.sum(-1, keepdim=True)
