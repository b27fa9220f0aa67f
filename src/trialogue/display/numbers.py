"""Numbers as text."""

import math
from numbers import Integral, Real

ABSENT = "–"


def finite_or_none(value: float) -> float | None:
    """Return `value`, or None if it is not a finite number, which JSON cannot hold."""
    return value if math.isfinite(value) else None


def format_number(value: object, digits: int = 3) -> str:
    """A number to `digits` significant digits, integers in full; text as it is, what is absent as a dash."""
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return ABSENT
    if isinstance(value, str | bool | Integral) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if number == 0:
        return "0"
    # Rounding first: 0.9996 to three digits is 1.00, which has one digit more before the point.
    exponent = int(f"{number:.{digits - 1}e}".partition("e")[2])
    if not -5 < exponent < 7:
        return f"{number:.{digits - 1}e}"
    return f"{number:.{max(0, digits - 1 - exponent)}f}"
