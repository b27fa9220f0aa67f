"""Theorem 3.1.1: the number of queries needed to find the one string of even parity that an oracle can generate.

The oracle is `HiddenString` with D - 1 unknown bits, uniformly one of M = 2^(D-1). A query with fewer than D
- 1 bits returns a fair coin. A query with D - 1 bits shows whether they are the hidden ones. A searcher can
only query the remaining candidates, so a dynamic program over their number m gives the optimum: V(m) = 1 + (m
- 1) / m V(m - 1). If the hidden string must be queried, V(1) = 1 and V(M) = (M + 1) / 2. The last candidate
needs no query, so V(1) = 0 and V(M) = (M - 1)(M + 2) / (2 M), about 2^(D-2). By Yao's lemma, no randomized
searcher does better on every hidden string, and a random order attains this on each. The theorem prints
2^(D-1), the worst case of a fixed order.
"""

from fractions import Fraction
from itertools import product
from typing import Annotated, NamedTuple

import torch
from annotated_types import Interval

from trialogue.data.puzzles.weighted_prefixes import Prefix
from trialogue.errors import InputError
from trialogue.oracles import Autoregressive, next_log_probs
from trialogue.randomness import numpy_generator
from trialogue.validation import Several, validated

_LONGEST_SEARCH = 21
_MOST_CANDIDATES = 1 << (_LONGEST_SEARCH - 1)
_LONGEST = 10_000
"""Largest length of a closed form, whose fractions have twice as many bits."""


@validated
def hidden_string_optimum(length: Annotated[int, Interval(ge=1, le=_LONGEST)]) -> Fraction:
    """Return the expected queries of the best searcher, (M - 1)(M + 2) / (2 M) with M = 2^(D-1).

    The last candidate is not queried.

    Args:
        length: Length D, from 1 to 10,000.
    """
    candidates = 1 << (length - 1)
    return Fraction((candidates - 1) * (candidates + 2), 2 * candidates)


@validated
def hidden_string_values(
    candidates: Annotated[int, Interval(ge=1, le=_MOST_CANDIDATES)], *, infer_last: bool = True
) -> list[Fraction]:
    """Return the expected queries of the best searcher for 1, ..., `candidates` remaining candidates.

    Args:
        candidates: Number of candidates, from 1 to 2^20.
        infer_last: Whether the last candidate is inferred instead of queried.
    """
    values = [Fraction(0 if infer_last else 1)]
    for left in range(2, candidates + 1):
        values.append(1 + Fraction(left - 1, left) * values[-1])
    return values


Bit = Annotated[int, Interval(ge=0, le=1)]
"""0 or 1."""


class Search(NamedTuple):
    """String found by a searcher, or None for FAIL, and its number of queries."""

    output: Prefix | None
    queries: int


@validated
def search_hidden_string(
    oracle: Autoregressive,
    length: Annotated[int, Interval(ge=1, le=_LONGEST_SEARCH)],
    *,
    order: Several[Several[Bit]] | None = None,
    infer_last: bool = True,
    seed: int = 0,
) -> Search:
    """Run the best searcher against an oracle.

    Each query samples one token.

    Args:
        oracle: A `HiddenString` oracle of `length` bits.
        length: Length D, from 1 to 21.
        order: Candidates of D - 1 bits in the order of the queries (default: all in random order).
        infer_last: Whether to infer the last of all candidates without a query. Otherwise, or if `order` is
            incomplete, the result is FAIL if no candidate is right.
        seed: Seed of the order and the tokens.
    """
    coins = numpy_generator(seed, "hidden-string", "answers")
    if order is None:
        strings = list(product((0, 1), repeat=length - 1))
        places = numpy_generator(seed, "hidden-string", "order").permutation(len(strings)).tolist()
        candidates = [strings[place] for place in places]
    else:
        candidates = [tuple(candidate) for candidate in order]
        wrong = [candidate for candidate in candidates if len(candidate) != length - 1]
        if wrong:
            raise InputError("order", wrong[0], f"give candidates of {length - 1} bits")
    # Only what is left of all candidates can be inferred.
    infer_last &= len(set(candidates)) == 1 << (length - 1)
    for queries, candidate in enumerate(candidates):
        if infer_last and queries == len(candidates) - 1:
            return Search((*candidate, sum(candidate) % 2), queries)
        tokens = torch.tensor([candidate], dtype=torch.int64).view(1, length - 1)
        distribution = next_log_probs(oracle, tokens).double().exp()[0].numpy()
        output = (*candidate, int(coins.choice(len(distribution), p=distribution / distribution.sum())))
        if sum(output) % 2 == 0:
            return Search(output, queries + 1)
    return Search(None, len(candidates))
