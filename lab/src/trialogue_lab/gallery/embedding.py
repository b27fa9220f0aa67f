"""Compact text for numbers in the page."""

import json
import string
from typing import Any

from torch import Tensor

_DIGITS = string.digits + string.ascii_lowercase


def in_base_36(numbers: Tensor) -> list[str]:
    """Return each row (rows, n) of integers below 36 as a string of base-36 digits."""
    return ["".join(_DIGITS[number] for number in row) for row in numbers.tolist()]


def rounded(value: Any) -> Any:
    """Return a JSON value with floats rounded to six digits.

    Rounding errors then do not change the page.
    """
    return json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.6g}"))
