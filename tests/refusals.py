"""Helpers that check whether commands and calls fail with a clear one-line error."""

import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from trialogue.errors import InputError


def commands_without_expected_error(
    cases: Iterable[tuple[str, str]], run: Callable[..., tuple[int, str, str]], *, alone: bool = True
) -> list[Any]:
    """Return the commands that do not fail with exit code 2, no output and the expected one-line error.

    Args:
        cases: Commands and the expected part of their error message.
        run: Function that runs the words of a command and returns exit code, standard output and standard error.
        alone: Whether the error must be the only line on standard error. Otherwise progress may precede it.
    """
    wrong = []
    for command, expected in cases:
        code, out, err = run(*shlex.split(command))
        line = err if alone else "\n".join(err.splitlines()[-1:]) + "\n"
        one_line = line.startswith("trialogue: error: ") and line.count("\n") == 1
        if (code, out) != (2, "") or not one_line or expected not in line:
            wrong.append((command, expected, code, out, err))
    return wrong


def expect_error(message: str, call: Callable[..., object], *arguments: Any, **options: Any) -> InputError:
    """Assert that a call raises a one-line `InputError` that matches the pattern `message`, and return the error."""
    with pytest.raises(InputError, match=message or None) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return caught.value


def expect_failure(message: str, check: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Assert that a check raises an `AssertionError` that matches the pattern `message`."""
    with pytest.raises(AssertionError, match=message or None):
        check(*arguments, **options)


def calls_without_expected_error(cases: Iterable[tuple[str, Callable[[], object]]]) -> list[Any]:
    """Return the calls that do not raise a one-line `InputError` that matches the expected pattern."""
    wrong: list[Any] = []
    for expected, call in cases:
        try:
            wrong.append((expected, "no error", call()))
        except InputError as error:
            if "\n" in str(error) or not re.search(expected, str(error)):
                wrong.append((expected, str(error)))
    return wrong
