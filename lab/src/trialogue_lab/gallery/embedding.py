"""Compact text for the numbers in the gallery page."""

import json
import string
from typing import Any

from torch import Tensor

_DIGITS = string.digits + string.ascii_lowercase


def encode_base_36(numbers: Tensor) -> list[str]:
    """Convert each row of integers below 36 to a string of base-36 digits.

    Args:
        numbers: Integers (rows, n).

    Returns:
        One string of n digits per row.
    """
    return ["".join(_DIGITS[number] for number in row) for row in numbers.tolist()]


def round_floats(value: Any) -> Any:
    """Round all floats in a JSON value to six significant digits.

    Rounding errors of different machines then do not change the page.

    Args:
        value: A value that `json.dumps` accepts.
    """
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.6g}"))
