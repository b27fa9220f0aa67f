"""Number of model calls needed to find a hidden string (Theorem 3.1.1 of the thesis).

A `HiddenString` model hides one string of D bits with even parity, so that there are M = 2^(D-1) candidates.
A call with D - 1 bits shows whether they are the hidden ones, and shorter calls give no information. A search
can therefore only test one candidate after another.

The smallest expected number of calls is (M + 1) / 2 if the last candidate must also be tested, and (M - 1)(M
+ 2) / (2 M) if it is inferred without a call. A search in random order needs exactly this number. The theorem
states 2^(D-1), the worst case of a fixed order.
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
"""Largest length for which the exact fraction is returned. It has twice as many bits."""


@validated
def hidden_string_optimum(length: Annotated[int, Interval(ge=1, le=_LONGEST)]) -> Fraction:
    """Return the smallest expected number of model calls that finds the only valid string of D bits.

    This hidden string has even parity and M = 2^(D-1) candidates for its first D - 1 bits. A call tests one candidate,
    and the last one is inferred. The optimum is (M - 1)(M + 2) / (2 M).

    Args:
        length: Length D, from 1 to 10,000.
    """
    candidates = 1 << (length - 1)
    return Fraction((candidates - 1) * (candidates + 2), 2 * candidates)


@validated
def hidden_string_values(
    candidates: Annotated[int, Interval(ge=1, le=_MOST_CANDIDATES)], *, infer_last: bool = True
) -> list[Fraction]:
    """Return the smallest expected number of model calls that finds the only valid string among m candidates.

    Each call tests whether one candidate is this hidden string. The optimum satisfies V(m) = 1 + (m - 1) / m V(m - 1).

    Args:
        candidates: Largest number of candidates m, from 1 to 2^20.
        infer_last: Whether the last candidate is inferred without a query, so V(1) = 0 instead of 1.

    Returns:
        List whose entry m - 1 is V(m).
    """
    values = [Fraction(0 if infer_last else 1)]
    for left in range(2, candidates + 1):
        values.append(1 + Fraction(left - 1, left) * values[-1])
    return values


Bit = Annotated[int, Interval(ge=0, le=1)]
"""0 or 1."""


class Search(NamedTuple):
    """Result of a search for the only valid string of a model.

    Attributes:
        output: String that the search found, or None if it failed.
        queries: Number of queries.
    """

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
    """Search for the only valid string of a `HiddenString` model by testing one candidate after another.

    The first D - 1 bits are the candidate. A test samples one more token, and the search stops when the resulting
    string has even parity.

    Args:
        oracle: `HiddenString` model of `length` bits.
        length: Length D, from 1 to 21.
        order: Candidates of D - 1 bits in the order of the tests (default: all in random order).
        infer_last: Whether to return the last candidate without a test. It applies only if `order` contains all
            candidates.
        seed: Seed of the order and the tokens.

    Returns:
        The string and the number of model calls. The string is None if no tested candidate was right.

    Raises:
        InputError: If a candidate in `order` does not have D - 1 bits.
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
    # The last candidate can be inferred only if all candidates are listed.
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
