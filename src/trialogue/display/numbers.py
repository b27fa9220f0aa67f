"""Formatting of numbers."""

import math
from numbers import Integral, Real

ABSENT = "–"


def finite_or_none(value: float) -> float | None:
    """Return a number for JSON, which cannot represent infinity and NaN.

    Args:
        value: Number.

    Returns:
        `value` if it is finite, else None.
    """
    return value if math.isfinite(value) else None


def format_number(value: object, digits: int = 3) -> str:
    """Format a value for a table.

    Args:
        value: Number, text or another object. None and NaN are formatted as a dash, other objects by `str`.
        digits: Number of significant digits of a float (default: 3). Integers are formatted in full.
    """
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return ABSENT
    if isinstance(value, str | bool | Integral) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if number == 0:
        return "0"
    # The exponent is taken after rounding, because 0.9996 becomes 1.00 with three digits.
    exponent = int(f"{number:.{digits - 1}e}".partition("e")[2])
    if not -5 < exponent < 7:
        return f"{number:.{digits - 1}e}"
    return f"{number:.{max(0, digits - 1 - exponent)}f}"
