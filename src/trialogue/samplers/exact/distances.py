"""Distances between distributions of sequences."""

import math
from collections.abc import Mapping
from typing import SupportsFloat

from trialogue.errors import InputError

Sequence_ = tuple[int, ...]
_ROUNDING = 1e-12
_TOLERANCE = 1e-9
"""Rounding may leave a probability this far below zero, and a sum this far above one."""


def total_variation(first: Mapping[Sequence_, float], second: Mapping[Sequence_, float]) -> float:
    """Half the summed absolute difference of two distributions; mass missing from either counts as a further outcome.

    Raises `InputError` if an argument is not a mapping to probabilities, or if its probabilities sum to more than one.
    """
    for field, distribution in (("first", first), ("second", second)):
        _require_masses(field, distribution)
    differences = [abs(first.get(x, 0.0) - second.get(x, 0.0)) for x in first.keys() | second.keys()]
    missing = abs(math.fsum(first.values()) - math.fsum(second.values()))
    return (math.fsum(differences) + missing) / 2


def kullback_leibler(first: Mapping[Sequence_, float], second: Mapping[Sequence_, float]) -> float:
    """KL(first, second) in nats, infinite where `first` gives what `second` does not.

    Mass missing from `first`, beyond rounding, counts as such an outcome.
    Raises `InputError` as `total_variation` does.
    """
    for field, distribution in (("first", first), ("second", second)):
        _require_masses(field, distribution)
    missing = 1 - math.fsum(first.values())
    if missing > _ROUNDING or any(p > 0 and not second.get(x, 0.0) > 0 for x, p in first.items()):
        return math.inf
    return max(0.0, math.fsum(p * math.log(p / second[x]) for x, p in first.items() if p > 0))


def _require_masses(field: str, distribution: Mapping[Sequence_, float]) -> None:
    """Raise `InputError` unless `distribution` maps outcomes to probabilities whose sum is at most one."""
    hint = "give a dictionary from outcomes to probabilities, of at least 0 and of sum at most 1"
    if not isinstance(distribution, Mapping):
        raise InputError(field, type(distribution).__name__, hint)
    for mass in distribution.values():
        if not (isinstance(mass, SupportsFloat) and mass >= -_TOLERANCE):  # NaN is not at least anything
            raise InputError(field, mass, hint)
    if (total := math.fsum(distribution.values())) > 1 + _TOLERANCE:
        raise InputError(field, total, hint)
