"""Tests of tables of calls that raise an `InputError`."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from trialogue.errors import InputError


def refusals(template: str, cases: Sequence[tuple[Any, Any]], *given: object) -> Callable[[], None]:
    """Return a test that every call raises an `InputError` of one line that matches a pattern.

    Args:
        template: The pattern of all cases, with "{}" for the part that differs, such as "^{}=" for the field.
        cases: Pairs of a call and that part, in either order.
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
                faults.append(f"{pattern!r}: nothing was refused")
        assert not faults, "\n".join(faults)

    return test
