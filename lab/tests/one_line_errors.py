"""Tests of tables of calls that raise an `InputError`."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from trialogue.errors import InputError


def refusals(template: str, cases: Sequence[tuple[Any, Any]], *given: object) -> Callable[[], None]:
    """Return a test that every call raises a one-line `InputError` that matches a pattern.

    Args:
        template: The pattern of all cases, where "{}" stands for the part of each case, for example "^{}=".
        cases: Pairs of a call and its part of the pattern, in either order.
        given: Arguments of every call.
    """

    def test() -> None:
        faults = []
        for case in cases:
            call, part = case if callable(case[0]) else case[::-1]
            pattern = template.replace("{}", part)
            try:
                call(*given)
            except InputError as error:
                if not re.search(pattern, str(error)) or "\n" in str(error):
                    faults.append(f"{pattern!r} is not in {str(error)!r}")
            else:
                faults.append(f"{pattern!r}: no error was raised")
        assert not faults, "\n".join(faults)

    return test
