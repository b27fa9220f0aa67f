"""What functions of a user's own answer as verifiers, and the one line on what is wrong with it."""

import inspect
import math
import reprlib
from collections.abc import Callable
from typing import Any

from trialogue.errors import InputError


class _Shown(str):
    """What a function was given, as an error line shows it: already a representation."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def stated_most(function: Callable[..., Any]) -> float:
    """The greatest value of a function, as far as its annotation tells: 1 of one that returns bool, else inf."""
    try:
        returns = inspect.signature(function).return_annotation
    except (TypeError, ValueError):  # of some that are built in
        return math.inf
    return 1.0 if returns in (bool, "bool") else math.inf


def number(answer: Any) -> float:
    """`answer` as a float; NaN where it is no single number."""
    if isinstance(answer, str | bytes) or getattr(answer, "shape", ()) != ():
        return math.nan
    try:
        return float(answer)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def value(function: Callable[..., Any], argument: object, answer: Any, most: float) -> float:
    """`answer` of a `function` about an `argument` as a value.

    Raises `InputError` where it is not one finite non-negative number, or greater than `most`.
    """
    found = number(answer)
    if not 0 <= found < math.inf:
        hint = f"it returned {reprlib.repr(answer)}: return one finite non-negative number or truth value"
        raise fault(function, argument, hint)
    if found > most:
        raise fault(function, argument, f"it returned {found:g}: at most {most:g} was promised")
    return found


def fault(function: Callable[..., Any], argument: object, hint: str) -> InputError:
    """The error of a `function` that was given `argument`."""
    name = getattr(function, "__name__", type(function).__name__)
    return InputError(f"verifier {name}", _Shown(reprlib.repr(argument)), hint)


def overdue(function: Callable[..., Any], argument: object, timeout: float) -> InputError:
    """The error of a `function` that took longer than `timeout` seconds about `argument`."""
    return fault(function, argument, f"it did not return within {timeout:g} s: fix it, or raise the timeout")
