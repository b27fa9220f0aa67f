"""Distances between laws of sequences."""

import math
from collections.abc import Mapping

from trialogue.errors import InputError

Sequence_ = tuple[int, ...]
_ROUNDING = 1e-12


def total_variation(first: Mapping[Sequence_, float], second: Mapping[Sequence_, float]) -> float:
    """Half the summed absolute difference of two laws; mass missing from either counts as a further outcome.

    Raises:
        InputError: If a probability is negative or not a finite number.
    """
    _require_probabilities("first", first)
    _require_probabilities("second", second)
    differences = [abs(first.get(x, 0.0) - second.get(x, 0.0)) for x in first.keys() | second.keys()]
    missing = abs(math.fsum(first.values()) - math.fsum(second.values()))
    return (math.fsum(differences) + missing) / 2


def kullback_leibler(first: Mapping[Sequence_, float], second: Mapping[Sequence_, float]) -> float:
    """KL(first, second) in nats, infinite where `first` gives what `second` does not.

    Mass missing from `first`, beyond rounding, counts as such an outcome.

    Raises:
        InputError: If a probability is negative or not a finite number.
    """
    _require_probabilities("first", first)
    _require_probabilities("second", second)
    missing = 1 - math.fsum(first.values())
    if missing > _ROUNDING or any(p > 0 and not second.get(x, 0.0) > 0 for x, p in first.items()):
        return math.inf
    return max(0.0, math.fsum(p * math.log(p / second[x]) for x, p in first.items() if p > 0))


def _require_probabilities(field: str, law: Mapping[Sequence_, float]) -> None:
    mend = "give a mapping from outcomes to their probabilities"
    if not isinstance(law, Mapping):
        raise InputError(field, law, mend)
    try:
        wrong = [p for p in law.values() if not -_ROUNDING <= p < math.inf]
    except TypeError as error:
        raise InputError(field, law, mend) from error
    if wrong:
        raise InputError(field, float(wrong[0]), "probabilities are finite numbers of at least 0")
