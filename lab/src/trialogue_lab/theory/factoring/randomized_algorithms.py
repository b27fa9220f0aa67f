"""Randomized algorithms of the autoregressive type: fresh coins at every call, and no memory but the output.

Footnote 1 of the source: any of them can be made deterministic, by answering with the law of the next token over the
coins, and induces the same law of sequences; the new one need not be fast. That rests on the coins being fresh: with
coins that are kept from call to call the same function can induce another law, which is what a random seed is for.

Source: "Theoretical Limitations of Autoregressive Models", section "A Note on Architecture", footnotes 1 and 2.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import stats

from trialogue.data.puzzles.weighted_prefixes import Prefix, one_hot
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.validation import Count, Several, validated

TOSSES = 10**6
"""Laws over more coins than this are not gone through."""

CoinFunction = Callable[[Prefix, int], int]
"""The next token after a prefix as a function of the coins, which are one whole number below some `outcomes`."""


@validated
def derandomized(function: CoinFunction, outcomes: Count, vocab_size: int, length: Count) -> Table:
    """Footnote 1: the oracle that answers with the average of the algorithm over its coins.

    The oracle raises `InputError` where the algorithm writes no token below `vocab_size`.
    """

    def law(prefix: Prefix) -> list[float]:
        answers = [one_hot(function(prefix, coins), vocab_size) for coins in range(outcomes)]
        return [math.fsum(column) / outcomes for column in zip(*answers, strict=True)]

    return Table(law, vocab_size, max_length=length)


@validated
def law_over_coins(
    function: CoinFunction, outcomes: Count, length: Count, *, fresh: bool = True
) -> dict[Prefix, float]:
    """The law of sequences by going through all coins: of every call by itself, or of one toss for all calls.

    Raises `InputError` where there are more than `TOSSES` to go through.
    """
    calls = length if fresh else 1
    # Logarithms first: the power itself may take for ever.
    if calls * math.log(outcomes) > math.log(TOSSES) + 1 or outcomes**calls > TOSSES:
        raise InputError("outcomes", outcomes, f"{outcomes}^{calls} tosses are too many to go through")
    tosses: list[Sequence[int]] = (
        list(product(range(outcomes), repeat=length))
        if fresh
        else [(coins,) * length for coins in range(outcomes)]
    )
    law: dict[Prefix, float] = {}
    for toss in tosses:
        prefix: Prefix = ()
        for coins in toss:
            prefix = (*prefix, function(prefix, coins))
        law[prefix] = law.get(prefix, 0.0) + 1 / len(tosses)
    return law


class RandomnessTest(NamedTuple):
    """Whether numbers look uniform: Pearson's statistic and p-value of leading and of other digits.

    `distinct` says how many numbers have no digit twice, `distinct_chance` how probable that is for one number, and
    `distinct_p` for at least so many.
    """

    first_statistic: float
    first_p: float
    rest_statistic: float
    rest_p: float
    distinct: int
    distinct_chance: float
    distinct_p: float


@validated
def randomness_test(numbers: Several[Count]) -> RandomnessTest:
    """Hold numbers of one length against the uniform law on such numbers: leading digit 1 to 9, others 0 to 9.

    Raises `InputError` where there are none, they have fewer than 2 or more than 10 digits, or lengths differ.
    """
    texts = [str(number) for number in numbers]
    lengths = {len(text) for text in texts}
    if len(lengths) != 1 or not 2 <= min(lengths) <= 10:
        raise InputError("numbers", sorted(lengths), "give numbers of one length, from 2 to 10 digits")
    (length,) = lengths
    first = np.bincount([int(text[0]) for text in texts], minlength=10)[1:]
    rest = np.bincount([int(digit) for text in texts for digit in text[1:]], minlength=10)
    # Nine leading digits, then nine others, eight, ...
    chance = math.perm(9, length - 1) / 10 ** (length - 1)
    distinct = sum(len(set(text)) == length for text in texts)
    leading, others = stats.chisquare(first), stats.chisquare(rest)
    return RandomnessTest(
        float(leading.statistic),
        float(leading.pvalue),
        float(others.statistic),
        float(others.pvalue),
        distinct,
        chance,
        float(stats.binom.sf(distinct - 1, len(texts), chance)),
    )
