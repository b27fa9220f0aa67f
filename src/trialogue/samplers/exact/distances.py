"""Distances between discrete distributions."""

import math
from collections.abc import Hashable, Mapping
from typing import Any, SupportsFloat, TypeVar

from trialogue.errors import InputError

Outcome = TypeVar("Outcome", bound=Hashable)
_ROUNDING = 1e-12
_TOLERANCE = 1e-9
"""Rounding may leave a probability this far below zero, and a sum this far above one."""


def total_variation(first: Mapping[Outcome, float], second: Mapping[Outcome, float]) -> float:
    """Return the total variation distance of two distributions, half the sum of their absolute differences.

    Args:
        first: Probabilities by outcome, such as tuples of token ids. If they sum to less than one, the missing
            probability counts as one further outcome.
        second: Probabilities by outcome, treated in the same way.

    Returns:
        A number from 0 to 1.

    Raises:
        InputError: If an argument is not a mapping to probabilities, or if its probabilities sum to more than one.

    Example:
        >>> from trialogue import total_variation
        >>> total_variation({(0,): 0.5, (1,): 0.5}, {(0,): 1.0})
        0.5
    """
    for field, distribution in (("first", first), ("second", second)):
        _require_masses(field, distribution)
    differences = [abs(first.get(x, 0.0) - second.get(x, 0.0)) for x in first.keys() | second.keys()]
    missing = abs(math.fsum(first.values()) - math.fsum(second.values()))
    return (math.fsum(differences) + missing) / 2


def kullback_leibler(first: Mapping[Outcome, float], second: Mapping[Outcome, float]) -> float:
    """Return the Kullback-Leibler divergence in nats, the sum of first(x) log(first(x) / second(x)) over outcomes x.

    The divergence is infinite if an outcome has a positive probability in `first` only, or if the probabilities of
    `first` sum to less than one.

    Args:
        first: Probabilities by outcome, such as tuples of token ids.
        second: Probabilities by outcome.

    Returns:
        A number of at least 0.

    Raises:
        InputError: If an argument is not a mapping to probabilities, or if its probabilities sum to more than one.
    """
    for field, distribution in (("first", first), ("second", second)):
        _require_masses(field, distribution)
    missing = 1 - math.fsum(first.values())
    if missing > _ROUNDING or any(p > 0 and not second.get(x, 0.0) > 0 for x, p in first.items()):
        return math.inf
    return max(0.0, math.fsum(p * math.log(p / second[x]) for x, p in first.items() if p > 0))


def _require_masses(field: str, distribution: Mapping[Any, float]) -> None:
    """Raise `InputError` unless `distribution` maps outcomes to probabilities whose sum is at most one."""
    hint = "give a dictionary from outcomes to probabilities, of at least 0 and of sum at most 1"
    if not isinstance(distribution, Mapping):
        raise InputError(field, type(distribution).__name__, hint)
    for mass in distribution.values():
        if not (isinstance(mass, SupportsFloat) and mass >= -_TOLERANCE):  # Also true for NaN.
            raise InputError(field, mass, hint)
    if (total := math.fsum(distribution.values())) > 1 + _TOLERANCE:
        raise InputError(field, total, hint)
