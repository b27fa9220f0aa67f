"""Validation of the values that user functions return, and the error messages about them."""

import inspect
import math
import reprlib
from collections.abc import Callable
from typing import Any

from trialogue.errors import InputError


class _Shown(str):
    """Argument of a function, already formatted for an error message."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def annotated_bound(function: Callable[..., Any]) -> float:
    """Return an upper bound of a function's values: 1 if it is annotated to return bool, else infinity."""
    try:
        returns = inspect.signature(function).return_annotation
    except (TypeError, ValueError):  # Some built-in functions have no signature.
        return math.inf
    return 1.0 if returns in (bool, "bool") else math.inf


def to_number(result: Any) -> float:
    """Convert `result` to a float. Return NaN if it is not a single number."""
    if isinstance(result, str | bytes) or getattr(result, "shape", ()) != ():
        return math.nan
    try:
        return float(result)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def checked_value(function: Callable[..., Any], argument: object, result: Any, most: float) -> float:
    """Convert the result of a user function to a value.

    Args:
        function: Function that was called.
        argument: Argument of the call.
        result: Result of the call.
        most: Upper bound of the function's values.

    Raises:
        InputError: If `result` is not a finite number from 0 to `most`.
    """
    value = to_number(result)
    if not 0 <= value < math.inf:
        hint = f"it returned {reprlib.repr(result)}; return a finite non-negative number or a bool"
        raise call_error(function, argument, hint)
    if value > most:
        raise call_error(function, argument, f"it returned {value:g}, which is above most={most:g}")
    return value


def call_error(function: Callable[..., Any], argument: object, hint: str) -> InputError:
    """Return the error for a failed call of `function` with `argument`."""
    name = getattr(function, "__name__", type(function).__name__)
    return InputError(f"verifier {name}", _Shown(reprlib.repr(argument)), hint)


def timeout_error(function: Callable[..., Any], argument: object, timeout: float) -> InputError:
    """Return the error for a call of `function` with `argument` that exceeded the timeout in seconds."""
    return call_error(
        function,
        argument,
        f"it did not return within {timeout:g} s; fix the function or increase the timeout",
    )
