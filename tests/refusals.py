"""Commands and calls that must be refused in one clear line."""

import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from trialogue.errors import InputError


def wrong_refusals(
    cases: Iterable[tuple[str, str]], run: Callable[..., tuple[int, str, str]], *, alone: bool = True
) -> list[Any]:
    """Return the commands that do not fail with code 2, no output and a line of error that has the words due.

    `run` is called with the words of a command. Unless `alone`, progress may come before the line.
    """
    wrong = []
    for command, due in cases:
        code, out, err = run(*shlex.split(command))
        line = err if alone else "\n".join(err.splitlines()[-1:]) + "\n"
        one_line = line.startswith("trialogue: error: ") and line.count("\n") == 1
        if (code, out) != (2, "") or not one_line or due not in line:
            wrong.append((command, due, code, out, err))
    return wrong


def wrong_errors(cases: Iterable[tuple[str, Callable[[], object]]]) -> list[Any]:
    """Return the calls that do not raise an `InputError` of one line in which the pattern due is found."""
    wrong: list[Any] = []
    for due, call in cases:
        try:
            wrong.append((due, "no error", call()))
        except InputError as error:
            if "\n" in str(error) or not re.search(due, str(error)):
                wrong.append((due, str(error)))
    return wrong
