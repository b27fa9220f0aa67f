"""Theorem 3.1.1: what it takes to find the one string of even parity that an unknown oracle can give.

The oracle is `HiddenString` of D - 1 unknown bits, uniformly one of M = 2^(D-1). A query with fewer than D - 1 bits is
answered by a fair coin whatever they are, and one with D - 1 bits says whether it is they: all that a searcher can do
is to ask about candidates that are left, and which one makes no difference. So the best one is a dynamic program over
their number m: V(m) = 1 + (m - 1) / m V(m - 1). If the hidden string must be asked about, V(1) = 1 and V(M) =
(M + 1) / 2; but the last candidate needs no query, V(1) = 0 and V(M) = (M - 1)(M + 2) / (2 M), about 2^(D-2). By Yao's
lemma no randomized searcher does better on every hidden string, and one in random order does as well on each. The
theorem prints 2^(D-1), which is what a fixed order takes at worst.
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
"""Largest length of a closed form: its fractions have twice as many bits."""


@validated
def hidden_string_optimum(length: Annotated[int, Interval(ge=1, le=_LONGEST)]) -> Fraction:
    """Expected queries of the best searcher for strings of `length` D: (M - 1)(M + 2) / (2 M) with M = 2^(D-1).

    It need not ask about the last candidate. Raises `InputError` for a length outside 1 to 10,000.
    """
    candidates = 1 << (length - 1)
    return Fraction((candidates - 1) * (candidates + 2), 2 * candidates)


@validated
def hidden_string_values(
    candidates: Annotated[int, Interval(ge=1, le=_MOST_CANDIDATES)], *, infer_last: bool = True
) -> list[Fraction]:
    """The dynamic program: expected queries of the best searcher while m = 1, ..., `candidates` are left.

    Without `infer_last` the hidden string must be asked about. Raises `InputError` for
    a number of candidates outside 1 to 2^20.
    """
    values = [Fraction(0 if infer_last else 1)]
    for left in range(2, candidates + 1):
        values.append(1 + Fraction(left - 1, left) * values[-1])
    return values


Bit = Annotated[int, Interval(ge=0, le=1)]
"""0 or 1."""


class Search(NamedTuple):
    """What a searcher found, None for FAIL, and the queries it took."""

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
    """Run the best searcher against `oracle`, which is taken to be a `HiddenString` of `length` bits.

    It asks about candidates, tuples of `length` - 1 bits, in their `order`, by default a random one of all; each query
    draws one token. With `infer_last` the last of all candidates is not asked about. Without it, or if `order` lacks
    candidates, the answer is FAIL where no candidate was right. Raises `InputError` for a length outside 1 to 21, and
    candidates of another length.
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
        law = next_log_probs(oracle, tokens).double().exp()[0].numpy()
        output = (*candidate, int(coins.choice(len(law), p=law / law.sum())))
        if sum(output) % 2 == 0:
            return Search(output, queries + 1)
    return Search(None, len(candidates))
