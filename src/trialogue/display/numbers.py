"""Formatting of numbers."""

import math
from numbers import Integral, Real

ABSENT = "–"


def finite_or_none(value: float) -> float | None:
    """Return `value`, or None if it is not finite, since JSON has no such numbers."""
    return value if math.isfinite(value) else None


def format_number(value: object, digits: int = 3) -> str:
    """Format a value for a table.

    Args:
        value: Number or text. None and NaN are formatted as a dash.
        digits: Number of significant digits of a float. Integers are formatted in full.
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
