"""Validation of the values that user-defined functions return, and error messages about invalid ones."""

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
    """Return the largest value that a function can return, according to its type annotation.

    Args:
        function: Function of a prefix.

    Returns:
        1 if the function is annotated to return bool, else infinity.
    """
    try:
        returns = inspect.signature(function).return_annotation
    except (TypeError, ValueError):  # Some built-in functions have no signature.
        return math.inf
    return 1.0 if returns in (bool, "bool") else math.inf


def to_number(result: Any) -> float:
    """Convert an object to a float.

    Args:
        result: Object that a user-defined function returned.

    Returns:
        The float. NaN if `result` is a text, an array with axes, or cannot be converted.
    """
    if isinstance(result, str | bytes) or getattr(result, "shape", ()) != ():
        return math.nan
    try:
        return float(result)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def validate_value(function: Callable[..., Any], argument: object, result: Any, most: float) -> float:
    """Convert the result of a user-defined verifier function to a float, and raise an error if it is invalid.

    Args:
        function: Function that was called. The error message contains its name.
        argument: Argument of the call, for the error message.
        result: Object that the function returned.
        most: Largest valid value.

    Returns:
        The result as a float.

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


def call_error(
    function: Callable[..., Any], argument: object, hint: str, kind: str = "verifier"
) -> InputError:
    """Create the error that is raised if a call of a user-defined function fails.

    Args:
        function: Function that was called. The error message contains its name.
        argument: Argument of the call. The error message contains its `repr`, shortened.
        hint: Reason of the failure, and an instruction for the user.
        kind: What the function computes (default: "verifier").
    """
    name = getattr(function, "__name__", type(function).__name__)
    return InputError(f"{kind} {name}", _Shown(reprlib.repr(argument)), hint)


def timeout_error(
    function: Callable[..., Any], argument: object, timeout: float, kind: str = "verifier"
) -> InputError:
    """Create the error that is raised if a call of a user-defined function takes too long.

    Args:
        function: Function that was called. The error message contains its name.
        argument: Argument of the call. The error message contains its `repr`, shortened.
        timeout: Maximum duration of the call in seconds.
        kind: What the function computes (default: "verifier").
    """
    hint = f"it did not return within {timeout:g} s; fix the function or increase the timeout"
    return call_error(function, argument, hint, kind)
