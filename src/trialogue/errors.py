"""Exceptions for invalid input, and helpers for error messages.

`trialogue.validation` checks the values of arguments.
"""

from collections.abc import Iterable
from typing import TypeVar

Choice = TypeVar("Choice")

_LONGEST = 300
"""Number of characters of a value that an error message shows. Paths and commands are shorter."""


MOST_COUNTED = 1 << 60
"""Largest number of tokens, steps or candidates. Sums of such numbers do not overflow tensors of int64."""


class InputError(ValueError):
    """Error for an invalid value of an argument, a setting or a file.

    The message is one line: `field=value: hint`. The command line prints the line and exits with code 2.

    Args:
        field: Name of the argument, the setting or the entry of a file.
        value: The invalid value.
        hint: Instruction that says how to correct the value.
    """

    def __init__(self, field: str, value: object, hint: str) -> None:
        super().__init__(f"{field}={_in_one_line(value)}: {hint}")
        self.field = field
        self.value = value
        self.hint = hint

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, object, str]]:
        """Support pickling, which otherwise rebuilds an exception from its message alone."""
        return InputError, (self.field, self.value, self.hint)


class NotFoundError(InputError):
    """Error for a name that matches nothing. The message is the hint alone, in whole sentences."""

    def __str__(self) -> str:
        return self.hint

    def __reduce__(self) -> tuple[type["NotFoundError"], tuple[str, object, str]]:
        """Support pickling, which otherwise rebuilds an exception from its message alone."""
        return NotFoundError, (self.field, self.value, self.hint)


class NotValidError(ValueError):
    """Error that explains in one line why a complete text is not valid."""


def _in_one_line(value: object) -> str:
    """Represent `value` in one line, and leave out the middle if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of more than 4300 digits.
        return f"<{type(value).__name__}>"
    if "\n" in text:
        text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 60]} ... {text[-50:]}"


def require_choice(field: str, value: Choice, choices: Iterable[str], hint: str = "") -> Choice:
    """Return `value`, or raise `InputError` if it is not one of `choices`."""
    known = tuple(choices)
    if not (isinstance(value, str) and value in known):
        raise InputError(field, value, hint or f"use one of {', '.join(known)}")
    return value


def require_model(model: str | None) -> None:
    """Raise `InputError` if the option `--model` is missing."""
    if model is None:
        hint = "--model is missing: use a Hugging Face id, a folder, or a name from `trialogue models list`"
        raise InputError("model", None, hint)


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an error in one line, for errors of a user's function."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")


def require_text(field: str, text: object, where: object = None) -> None:
    """Raise `InputError` if `text` is not a string, or has a lone surrogate, which UTF-8 cannot encode.

    Args:
        field: Name of the text in the error.
        text: The text.
        where: Source of the text, which the error shows instead of the text.
    """
    if not isinstance(text, str):
        raise InputError(field, text if where is None else where, "give a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        hint = f"remove character {error.start + 1}, which is half of a surrogate pair"
        raise InputError(field, text if where is None else where, hint) from None


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the memory of the machine or of its accelerator is exhausted."""
    # The class of torch is compared by name, so that torch need not be imported.
    named = type(error).__name__ == "OutOfMemoryError"
    words = ("not enough memory", "can't allocate memory", "out of memory", "bad_alloc")
    return named or isinstance(error, MemoryError) or any(word in str(error) for word in words)


def first_line(error: BaseException) -> str:
    """Return the first line of the message of an error, or its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()
