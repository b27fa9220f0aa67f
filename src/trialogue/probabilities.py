"""Validation of probability distributions."""

from typing import Any

from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.errors import InputError

SINGLE = 1e-6
"""Tolerance of the sum of probabilities in single precision."""


def validate_probabilities(
    field: str,
    values: Any,
    shape: tuple[int, ...],
    *,
    tolerance: float = SINGLE,
    hint: str = "give non-negative probabilities that sum to one",
) -> Tensor:
    """Convert probability distributions to float64, and raise `InputError` if they are not valid.

    Args:
        field: Name of the argument in errors.
        values: Probabilities (..., k).
        shape: Required shape.
        tolerance: Largest difference of a sum from one (default: 1e-6).
        hint: Hint of the error.

    Raises:
        InputError: If the shape differs, a number is negative or NaN, or a sum differs from one.
    """
    numbers = real_tensor(field, values, f"{hint}, of the shape {shape}")
    if numbers.shape != shape:
        raise InputError(field, tuple(numbers.shape), f"{hint}, of the shape {shape}")
    sums = numbers.sum(-1)
    # Comparisons with NaN are false.
    right = (numbers >= 0).all(-1) & ((sums - 1).abs() <= tolerance)
    if not bool(right.all()):
        distribution, total = numbers[~right][0], sums[~right][0]
        wrong = distribution[~(distribution >= 0)]
        raise InputError(field, float(wrong[0] if len(wrong) else total), hint)
    return numbers


def validate_distribution(
    field: str, values: Any, shape: tuple[int, ...], *, tolerance: float = SINGLE
) -> Tensor:
    """Convert probability distributions to float64 and normalise them. See `validate_probabilities`."""
    numbers = validate_probabilities(field, values, shape, tolerance=tolerance)
    return numbers / numbers.sum(-1, keepdim=True)
