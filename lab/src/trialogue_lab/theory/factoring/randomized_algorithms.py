"""Randomized algorithms that compute the next token from the prefix and random numbers ("coins").

Each call receives the prefix and fresh coins, and stores nothing. Averaging over the coins gives a language
model with the same distribution of sequences (footnote 1 of the source). If coins are kept between calls, the
distribution can differ.

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
"""Largest number of combinations of random integers that are enumerated."""

CoinFunction = Callable[[Prefix, int], int]
"""Function from a prefix and a random integer to the next token."""


@validated
def derandomize(function: CoinFunction, outcomes: Count, vocab_size: int, length: Count) -> Table:
    """Return a model with the same next-token distribution as a randomized algorithm (footnote 1 of the source).

    The algorithm computes the next token from the prefix and a random number. The distribution is its average over all
    random numbers.

    Args:
        function: Function from a prefix and a random integer below `outcomes` to the next token.
        outcomes: Number of equally likely integers.
        vocab_size: Number of tokens.
        length: Number of tokens of a sequence.

    Returns:
        Model whose next-token distribution is that of the function's result. It raises `InputError` if the function
        returns a token outside the vocabulary.
    """

    def distribution(prefix: Prefix) -> list[float]:
        answers = [one_hot(function(prefix, coins), vocab_size) for coins in range(outcomes)]
        return [math.fsum(column) / outcomes for column in zip(*answers, strict=True)]

    return Table(distribution, vocab_size, max_length=length)


@validated
def distribution_over_coins(
    function: CoinFunction, outcomes: Count, length: Count, *, fresh: bool = True
) -> dict[Prefix, float]:
    """Compute the output distribution of a randomized algorithm that generates a sequence token by token.

    The algorithm is run once for each possible combination of its random integers, and equal outputs are counted.

    Args:
        function: Function from a prefix and an integer below `outcomes` to the next token.
        outcomes: Number of equally likely integers.
        length: Number of tokens of a sequence.
        fresh: Whether each call receives a new integer. Otherwise all calls for one sequence receive the same.

    Returns:
        Probability of each sequence.

    Raises:
        InputError: If there are more than `TOSSES` combinations of integers.
    """
    calls = length if fresh else 1
    # Compare logarithms first, because computing the power could take very long.
    if calls * math.log(outcomes) > math.log(TOSSES) + 1 or outcomes**calls > TOSSES:
        raise InputError(
            "outcomes",
            outcomes,
            f"{outcomes}^{calls} combinations are too many to enumerate: use fewer outcomes or a smaller length",
        )
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
    """Tests whether the digits of some numbers look uniformly random.

    Attributes:
        first_statistic: Pearson chi-square statistic of the leading digits.
        first_p: Its p-value.
        rest_statistic: Pearson chi-square statistic of all other digits.
        rest_p: Its p-value.
        distinct: Number of numbers without a repeated digit.
        distinct_chance: Probability that one random number has no repeated digit.
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
    """Test whether numbers look uniformly random, with a leading digit from 1 to 9.

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
