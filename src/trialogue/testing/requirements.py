"""Helpers that raise `AssertionError` with a uniform message."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn


def fail(subject: object, message: str) -> NoReturn:
    """Raise `AssertionError` with a message that names the checked object.

    Args:
        subject: Checked object.
        message: Description of the violated requirement.
    """
    raise AssertionError(f"{subject}: {message}")


def require(holds: bool, subject: object, message: str) -> None:
    """Raise `AssertionError` if a requirement is violated.

    Args:
        holds: Whether the requirement is satisfied.
        subject: Checked object, for the error message.
        message: Description of the violation.
    """
    if not holds:
        fail(subject, message)


def require_equal_distributions(
    subject: object,
    distribution: Mapping[Any, float],
    expected: Mapping[Any, float],
    what: str,
    tolerance: float = 1e-12,
) -> None:
    """Raise `AssertionError` if two distributions assign different probabilities to an outcome.

    Args:
        subject: Checked object, for the error message.
        distribution: Dict from outcomes to probabilities. Missing outcomes have probability 0.
        expected: Dict from outcomes to expected probabilities.
        what: Description of the distribution, for the error message.
        tolerance: Largest absolute difference. Relative differences up to 1e-9 are accepted too.
    """
    for outcome in {**expected, **distribution}:
        actual, due = distribution.get(outcome, 0.0), expected.get(outcome, 0.0)
        if not math.isclose(actual, due, rel_tol=1e-9, abs_tol=tolerance):
            fail(subject, f"{what}: {outcome} has {actual:.6g} instead of {due:.6g}")
