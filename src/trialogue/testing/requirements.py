"""How a check says what is wrong."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn


def fail(subject: object, message: str) -> NoReturn:
    """Raise `AssertionError` that names what was checked and says what is wrong with it."""
    raise AssertionError(f"{subject}: {message}")


def require(holds: bool, subject: object, message: str) -> None:
    """Fail with `message` unless it `holds`."""
    if not holds:
        fail(subject, message)


def require_equal_laws(
    subject: object,
    distribution: Mapping[Any, float],
    expected: Mapping[Any, float],
    what: str,
    tolerance: float = 1e-12,
) -> None:
    """Fail where two distributions differ by more than `tolerance` in any outcome; one that is missing has probability
    zero.
    """
    for outcome in {**expected, **distribution}:
        given, due = distribution.get(outcome, 0.0), expected.get(outcome, 0.0)
        if not math.isclose(given, due, rel_tol=1e-9, abs_tol=tolerance):
            fail(subject, f"{what}: {outcome} has {given:.6g} in place of {due:.6g}")
