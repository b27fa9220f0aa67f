"""The one exception that means: the input is wrong, and here is how to mend it."""

import math
from operator import index


class InputError(ValueError):
    """A value that cannot be used: one line that names the field, the value and the mend.

    The command line prints the line and exits with code 2; a library user can catch it as a `ValueError`.
    """

    def __init__(self, field: str, value: object, mend: str) -> None:
        super().__init__(f"{field}={value!r}: {mend}")
        self.field = field
        self.value = value
        self.mend = mend

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, object, str]]:
        """Cross process boundaries whole: an exception is otherwise rebuilt from its message alone."""
        return InputError, (self.field, self.value, self.mend)


def whole_number(field: str, value: object, least: int) -> int:
    """Return `value` as an int; raises `InputError` where it is no whole number or less than `least`."""
    try:
        number = int(index(value))  # type: ignore[arg-type]
    except TypeError:
        raise InputError(field, value, f"use a whole number of at least {least}") from None
    if number < least:
        raise InputError(field, value, f"use at least {least}")
    return number


def positive_number(field: str, value: object) -> float:
    """Return `value` as a float; raises `InputError` where it is no finite number above 0."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):
        number = math.nan
    if isinstance(value, str) or not 0 < number < math.inf:
        raise InputError(field, value, "use a finite number above 0")
    return number


def require_text(field: str, text: str, where: object = None) -> None:
    """Raise `InputError` for a string with a lone surrogate, which JSON can write and UTF-8 cannot.

    The error names `field` and, as its value, `where` the string is from, else the string.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        mend = f"character {error.start + 1} is half of a surrogate pair, and so no text: leave it out"
        raise InputError(field, text if where is None else where, mend) from None
