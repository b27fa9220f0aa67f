"""The exception for invalid input, with the hint to fix it, and checks of single values.

Bools, texts and complex numbers do not count as numbers. NumPy scalars and tensors of one number do.
"""

import math
from collections.abc import Iterable
from operator import index
from typing import SupportsFloat, SupportsIndex, TypeVar

Choice = TypeVar("Choice")

_LONGEST = 300
"""Largest number of characters of a value in an error message."""


MOST_COUNTED = 1 << 60
"""Largest number of tokens, steps or candidates whose sums fit into int64."""


class InputError(ValueError):
    """An invalid value, with a one-line message of the form `field=value: hint`.

    The command line prints the message and exits with code 2.

    Args:
        field: Name of the argument or setting.
        value: The invalid value.
        hint: What to do.
    """

    def __init__(self, field: str, value: object, hint: str) -> None:
        super().__init__(f"{field}={_in_one_line(value)}: {hint}")
        self.field = field
        self.value = value
        self.hint = hint

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, object, str]]:
        """Return the constructor arguments for pickling. By default, an exception is restored from its message only."""
        return InputError, (self.field, self.value, self.hint)


class NotValidError(ValueError):
    """The reason why a complete text is invalid, in one line."""


def _in_one_line(value: object) -> str:
    """Return the representation of `value` without line breaks, abbreviated if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of more than 4300 digits.
        return f"<{type(value).__name__}>"
    if "\n" in text:
        text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 60]} ... {text[-50:]}"


def whole_number(field: str, value: object, least: int, most: int | None = None, hint: str = "") -> int:
    """Return `value` as an int. Raises `InputError` unless it is an integer from `least` to `most`.

    1.0, "1" and True do not count as integers. NumPy integers and tensors of one integer do.

    Args:
        field: Name of the value in errors.
        value: The value.
        least: Smallest allowed integer.
        most: Largest allowed integer (default: no bound).
        hint: Hint of the error (default: derived from the bounds).
    """
    try:
        if _is_bool(value) or not isinstance(value, SupportsIndex):
            raise TypeError
        number = int(index(value))
    except TypeError:
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(field, value, hint or f"use an integer {bounds}") from None
    if number < least:
        raise InputError(field, value, hint or f"use at least {least}")
    if most is not None and number > most:
        raise InputError(field, value, hint or f"use at most {most}")
    return number


def counter(field: str, value: object, least: int, hint: str = "") -> int:
    """Return `value` as an int of at least `least` whose sums fit into int64. Raises `InputError` as `whole_number`."""
    number = whole_number(field, value, least, hint=hint)
    return whole_number(field, number, least, MOST_COUNTED)


def positive_number(field: str, value: object, hint: str = "use a finite number above 0") -> float:
    """Return `value` as a float. Raises `InputError` unless it is a finite number above 0."""
    number = _number(value)
    if not 0 < number < math.inf:
        raise InputError(field, value, hint)
    return number


def non_negative_number(field: str, value: object, hint: str = "use a finite number of at least 0") -> float:
    """Return `value` as a float. Raises `InputError` unless it is a finite number of at least 0."""
    number = _number(value)
    if not 0 <= number < math.inf:
        raise InputError(field, value, hint)
    return number


def probability(field: str, value: object, *, zero: bool = True, one: bool = True, hint: str = "") -> float:
    """Return `value` as a float. Raises `InputError` unless it is a probability.

    Args:
        field: Name of the value in errors.
        value: The value.
        zero: Whether 0 is allowed (default: True).
        one: Whether 1 is allowed (default: True).
        hint: Hint of the error (default: derived from the bounds).
    """
    number = _number(value)
    if not 0 <= number <= 1 or (number == 0 and not zero) or (number == 1 and not one):
        bounds = f"{'of at least' if zero else 'above'} 0 and {'at most' if one else 'below'} 1"
        raise InputError(field, value, hint or f"use a probability {bounds}")
    return number


def truth_value(field: str, value: object) -> bool:
    """Return `value` as a bool. Raises `InputError` unless it is a bool. "no" and 0 do not count as False."""
    if not _is_bool(value):
        raise InputError(field, value, "use True or False")
    return bool(value)


def one_of(field: str, value: Choice, choices: Iterable[str], hint: str = "") -> Choice:
    """Return `value`. Raises `InputError` unless it is one of the texts `choices`."""
    known = tuple(choices)
    if not (isinstance(value, str) and value in known):
        raise InputError(field, value, hint or f"use one of {', '.join(known)}")
    return value


def require_function(field: str, value: object, hint: str) -> None:
    """Raise `InputError` unless `value` is callable."""
    if not callable(value):
        raise InputError(field, value, hint)


def _is_bool(value: object) -> bool:
    """Return whether `value` is a bool of Python, NumPy or torch."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def _number(value: object) -> float:
    """Return `value` as a float, or NaN if it is not a single real number."""
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
    """Return the type and message of `error`, raised by a user's function, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def require_text(field: str, text: object, where: object = None) -> None:
    """Raise `InputError` unless `text` is a string that can be encoded as UTF-8.

    JSON can contain lone surrogates, which UTF-8 cannot encode.

    Args:
        field: Name of the value in errors.
        text: The text.
        where: Location of the text, which is shown as the value in errors (default: the text).
    """
    if not isinstance(text, str):
        raise InputError(field, text if where is None else where, "give a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        hint = f"remove character {error.start + 1}, which is half of a surrogate pair"
        raise InputError(field, text if where is None else where, hint) from None


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error states that the memory of the machine or its accelerator does not suffice."""
    # The error of torch is compared by name, so that torch need not be imported.
    named = type(error).__name__ == "OutOfMemoryError"
    words = ("not enough memory", "can't allocate memory", "out of memory", "bad_alloc")
    return named or isinstance(error, MemoryError) or any(word in str(error) for word in words)


def first_line(error: BaseException) -> str:
    """Return the first line of the message of an error, or its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
