"""Formatting of numbers."""

import math
from numbers import Integral, Real

ABSENT = "–"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def finite_or_none(value: float) -> float | None:
    """Return a number for JSON, which cannot represent infinity and NaN.

    Args:
        value: Number.

    Returns:
        `value` if it is finite, else None.
    """
    return value if math.isfinite(value) else None


def format_number(value: object, digits: int = 3) -> str:
    """Format a value for a table, for example 0.0123, or 3.34×10⁻⁵ below 0.0001.

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
    rounded = f"{number:.{digits - 1}e}"
    exponent = int(rounded.partition("e")[2])
    if not -5 < exponent < 7:
        return plain_exponent(rounded)
    return f"{number:.{max(0, digits - 1 - exponent)}f}"


def plain_exponent(text: str) -> str:
    """Write the exponent of a formatted number as a power of ten, so that "3.34e-05" becomes "3.34×10⁻⁵".

    Args:
        text: Number as formatted by Python, with or without an exponent.
    """
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}" if mark else text
