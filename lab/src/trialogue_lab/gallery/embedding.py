"""Numbers as a page carries them: few digits, and small whole ones a character each."""

import string
from collections.abc import Mapping
from typing import Any

from torch import Tensor

_CHARACTERS = string.digits + string.ascii_lowercase


def in_characters(numbers: Tensor) -> list[str]:
    """Rows of whole `numbers` (rows, n) below 36 as texts of n characters: digits of base 36."""
    return ["".join(_CHARACTERS[number] for number in row) for row in numbers.tolist()]


def without_rounding(distance: float) -> float:
    """A total variation whose error of rounding is gone: that of equal laws is 0."""
    return round(distance, 12)


def rounded(value: Any, digits: int = 6) -> Any:
    """JSON values with so many significant digits, so that machines that round differently write the same bytes."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, Mapping):
        return {name: rounded(part, digits) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part, digits) for part in value]
    return value
