"""Randomized autoregressive algorithms, which use fresh random coins at each call and keep no other memory.

Footnote 1 of the source: averaging the next token over the coins makes the algorithm deterministic and keeps
the distribution of sequences. The deterministic version may be slower. Coins that are kept between calls can
change the distribution.

Source: "Theoretical Limitations of Autoregressive Models", section "A Note on Architecture", footnotes 1 and
2.
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
"""Largest number of coin outcomes to enumerate."""

CoinFunction = Callable[[Prefix, int], int]
"""Function from a prefix and coins, an integer below `outcomes`, to the next token."""


@validated
def derandomized(function: CoinFunction, outcomes: Count, vocab_size: int, length: Count) -> Table:
    """Return the oracle of footnote 1, whose next-token distribution averages over the coins.

    The oracle raises `InputError` if the algorithm returns a token outside the vocabulary.
    """

    def distribution(prefix: Prefix) -> list[float]:
        answers = [one_hot(function(prefix, coins), vocab_size) for coins in range(outcomes)]
        return [math.fsum(column) / outcomes for column in zip(*answers, strict=True)]

    return Table(distribution, vocab_size, max_length=length)


@validated
def distribution_over_coins(
    function: CoinFunction, outcomes: Count, length: Count, *, fresh: bool = True
) -> dict[Prefix, float]:
    """Return the distribution of sequences by enumerating all coins.

    Args:
        function: Algorithm.
        outcomes: Number of outcomes of the coins of one call.
        length: Number of tokens.
        fresh: Whether each call has its own coins. Otherwise one toss serves all calls.

    Raises:
        InputError: If there are more than `TOSSES` outcomes.
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
    distribution: dict[Prefix, float] = {}
    for toss in tosses:
        prefix: Prefix = ()
        for coins in toss:
            prefix = (*prefix, function(prefix, coins))
        distribution[prefix] = distribution.get(prefix, 0.0) + 1 / len(tosses)
    return distribution


class RandomnessTest(NamedTuple):
    """Pearson chi-square tests of leading and other digits, and a test of repeated digits.

    Attributes:
        distinct: Number of numbers without a repeated digit.
        distinct_chance: Probability of this for one random number.
        distinct_p: Probability of at least `distinct` such numbers.
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
    """Test numbers of equal length against the uniform distribution with leading digit 1 to 9.

    Args:
        numbers: Numbers of 2 to 10 digits, all of the same length.

    Raises:
        InputError: If there are no numbers or their lengths are invalid.
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
