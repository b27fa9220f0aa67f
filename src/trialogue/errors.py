"""The one exception that means: the input is wrong, and here is how to fix it; and the checks of single values.

A truth value is no number here, a text or a complex number is none either; numbers of numpy and tensors of one are.
"""

import math
from collections.abc import Iterable
from operator import index
from typing import SupportsFloat, SupportsIndex, TypeVar

Choice = TypeVar("Choice")

_LONGEST = 300
"""Characters of a value in an error: paths and commands are shorter, arrays and texts need not be."""


MOST_COUNTED = 1 << 60
"""The largest number of tokens, steps or candidates that tensors of int64 count safely."""


class InputError(ValueError):
    """A value that cannot be used: one line that names the field, the value and the hint.

    The command line prints the line and exits with code 2; a library user can catch it as a `ValueError`.
    """

    def __init__(self, field: str, value: object, hint: str) -> None:
        super().__init__(f"{field}={_in_one_line(value)}: {hint}")
        self.field = field
        self.value = value
        self.hint = hint

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, object, str]]:
        """Cross process boundaries whole: an exception is otherwise rebuilt from its message alone."""
        return InputError, (self.field, self.value, self.hint)


class NotValidError(ValueError):
    """Why a whole text that means something is not valid, in a line."""


def _in_one_line(value: object) -> str:
    """The representation of `value` without line breaks, its middle left out where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4300 digits
        return f"<{type(value).__name__}>"
    if "\n" in text:
        text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 60]} ... {text[-50:]}"


def whole_number(field: str, value: object, least: int, most: int | None = None, hint: str = "") -> int:
    """Return `value` as an int; raises `InputError` where it is no whole number, or not from `least` to `most`.

    1.0, "1" and True are no whole numbers, those of numpy and tensors of one are. The error says `hint`, if given.
    """
    try:
        if _is_bool(value) or not isinstance(value, SupportsIndex):
            raise TypeError
        number = int(index(value))
    except TypeError:
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(field, value, hint or f"use a whole number {bounds}") from None
    if number < least:
        raise InputError(field, value, hint or f"use at least {least}")
    if most is not None and number > most:
        raise InputError(field, value, hint or f"use at most {most}")
    return number


def counter(field: str, value: object, least: int, hint: str = "") -> int:
    """Return `value` as an int that fits into int64 with room for sums; raises `InputError` as `whole_number` does."""
    number = whole_number(field, value, least, hint=hint)
    return whole_number(field, number, least, MOST_COUNTED)


def positive_number(field: str, value: object, hint: str = "use a finite number above 0") -> float:
    """Return `value` as a float; raises `InputError` where it is no finite number above 0."""
    number = _number(value)
    if not 0 < number < math.inf:
        raise InputError(field, value, hint)
    return number


def non_negative_number(field: str, value: object, hint: str = "use a finite number of at least 0") -> float:
    """Return `value` as a float; raises `InputError` where it is no finite number of at least 0."""
    number = _number(value)
    if not 0 <= number < math.inf:
        raise InputError(field, value, hint)
    return number


def probability(field: str, value: object, *, zero: bool = True, one: bool = True, hint: str = "") -> float:
    """Return `value` as a float; raises `InputError` where it is no probability, or 0 or 1 where these are not allowed.

    The error says `hint`, if given.
    """
    number = _number(value)
    if not 0 <= number <= 1 or (number == 0 and not zero) or (number == 1 and not one):
        bounds = f"{'of at least' if zero else 'above'} 0 and {'at most' if one else 'below'} 1"
        raise InputError(field, value, hint or f"use a probability {bounds}")
    return number


def truth_value(field: str, value: object) -> bool:
    """Return `value` as a bool; raises `InputError` where it is none: "no" and 0 are not False."""
    if not _is_bool(value):
        raise InputError(field, value, "use True or False")
    return bool(value)


def one_of(field: str, value: Choice, choices: Iterable[str], hint: str = "") -> Choice:
    """Return `value`; raises `InputError` where it is none of the texts `choices`."""
    known = tuple(choices)
    if not (isinstance(value, str) and value in known):
        raise InputError(field, value, hint or f"use one of {', '.join(known)}")
    return value


def require_function(field: str, value: object, hint: str) -> None:
    """Raise `InputError` where `value` cannot be called."""
    if not callable(value):
        raise InputError(field, value, hint)


def _is_bool(value: object) -> bool:
    """Whether `value` is a truth value: Python's, numpy's, or a tensor of one."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def _number(value: object) -> float:
    """`value` as a float; NaN where it is no single real number: a text, a truth value, complex, or an array."""
    if type(value) is float:
        return value
    array = "complex" in str(getattr(value, "dtype", "")) or tuple(getattr(value, "shape", ())) != ()
    if array or _is_bool(value) or isinstance(value, str | bytes | bytearray):
        return math.nan
    if not isinstance(value, SupportsFloat | SupportsIndex):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except (TypeError, ValueError, RuntimeError):
        return math.nan


def reason(error: BaseException) -> str:
    """What `error`, raised by a user's function, says, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def require_text(field: str, text: object, where: object = None) -> None:
    """Raise `InputError` for what is no string, and for one with a lone surrogate, which JSON can write, UTF-8 cannot.

    The error names `field` and, as its value, `where` the string is from, else the string.
    """
    if not isinstance(text, str):
        raise InputError(field, text if where is None else where, "give a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        hint = f"character {error.start + 1} is half of a surrogate pair, and so no text: leave it out"
        raise InputError(field, text if where is None else where, hint) from None


def out_of_memory(error: BaseException) -> bool:
    """Whether it says that the memory of the machine, or of its accelerator, does not suffice."""
    named = type(error).__name__ == "OutOfMemoryError"  # torch's, which need not be imported to know it
    words = ("not enough memory", "can't allocate memory", "out of memory", "bad_alloc")
    return named or isinstance(error, MemoryError) or any(word in str(error) for word in words)


def first_line(error: BaseException) -> str:
    """Return the first line of the message of an error, or its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
