"""Functions that raise `AssertionError` with a uniform message."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn


def fail(subject: object, message: str) -> NoReturn:
    """Raise `AssertionError` with a message that begins with the checked object."""
    raise AssertionError(f"{subject}: {message}")


def require(holds: bool, subject: object, message: str) -> None:
    """Raise `AssertionError` with `message` unless `holds` is true."""
    if not holds:
        fail(subject, message)


def require_equal_distributions(
    subject: object,
    distribution: Mapping[Any, float],
    expected: Mapping[Any, float],
    what: str,
    tolerance: float = 1e-12,
) -> None:
    """Require that two distributions agree in every outcome.

    Args:
        subject: Checked object, for the error message.
        distribution: Probabilities by outcome. Missing outcomes have probability 0.
        expected: Expected probabilities by outcome.
        what: Description of the distribution, for the error message.
        tolerance: Largest absolute difference.
    """
    for outcome in {**expected, **distribution}:
        actual, due = distribution.get(outcome, 0.0), expected.get(outcome, 0.0)
        if not math.isclose(actual, due, rel_tol=1e-9, abs_tol=tolerance):
            fail(subject, f"{what}: {outcome} has {actual:.6g} instead of {due:.6g}")
