"""Independent enumeration of Dyck strings and their probabilities."""

import functools
import itertools
from collections.abc import Callable

from torch import Tensor

from trialogue.data.dyck.language import Dyck
from trialogue.oracles import pad_sequences

String = tuple[int, ...]


@functools.cache
def words(length: int, types: int, max_depth: int) -> frozenset[String]:
    """Return all balanced strings of the grammar S -> empty | open S close S."""
    if length == 0:
        return frozenset([()])
    if max_depth == 0:
        return frozenset()
    return frozenset(
        (2 * t, *inner, 2 * t + 1, *rest)
        for size in range(0, length - 1, 2)
        for t in range(types)
        for inner in words(size, types, max_depth - 1)
        for rest in words(length - 2 - size, types, max_depth)
    )


@functools.cache
def prefixes(length: int, types: int, max_depth: int | None, complete: bool) -> frozenset[String]:
    """Return all viable prefixes of up to `length` tokens, including the complete strings of `length` tokens."""
    bound = max_depth or length
    whole = words(length if complete else 2 * length, types, bound)
    return frozenset(word[:n] for word in whole for n in range(length + 1))


def strings(types: int, longest: int) -> tuple[list[String], Tensor, Tensor]:
    """Return all strings of up to `longest` brackets."""
    every = [s for n in range(longest + 1) for s in itertools.product(range(2 * types), repeat=n)]
    return (every, *pad_sequences(every))


DISTRIBUTIONS = [
    Dyck(8),
    Dyck(8, (0.7, 0.3), 0.8, max_depth=2),
    Dyck(6, (0.5, 0.5), 0.4, max_depth=2, complete=False),
    Dyck(6, (0.9, 0.1), 0.6, complete=False),
    Dyck(6, (0.2, 0.3, 0.5), 0.5, max_depth=3),
    Dyck(7, (1.0,), 0.3, max_depth=1, complete=False),
]


def mutated(dyck: Dyck, change: Callable[[Dyck], object]) -> Dyck:
    twin = Dyck(dyck.length, dyck.type_probs, dyck.open_prob, dyck.max_depth, dyck.complete)
    change(twin)
    return twin


def open_more(dyck: Dyck) -> None:
    twin = Dyck(dyck.length, dyck.type_probs, dyck.open_prob + 0.02)
    dyck._thresholds, dyck._log_distribution = twin._thresholds, twin._log_distribution
