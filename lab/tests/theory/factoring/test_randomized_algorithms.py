"""Tests of footnotes 1 and 2: derandomized algorithms and randomness tests of numbers."""

from functools import partial

import pytest

from one_line_errors import refusals
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.random_primes import RandomNumbers
from trialogue_lab.theory.factoring.randomized_algorithms import (
    derandomize,
    distribution_over_coins,
    randomness_test,
)

GPT4 = (
    253489, 572931, 523749, 935271, 754823, 543219, 523891, 523689,
    537218, 247856, 527893, 537891, 523198, 523817, 523481, 254839,
)  # fmt: skip


def biased_repetition(prefix: tuple[int, ...], coins: int) -> int:
    """Repeat the last token for coins 0 to 2, and add the number of the coin otherwise."""
    last = prefix[-1] if prefix else 1
    return last if coins < 3 else (last + coins) % 3


def test_derandomized_algorithm_has_the_distribution_of_the_randomized_one() -> None:
    oracle = derandomize(biased_repetition, 5, 3, length=5)
    distribution = exact_distribution(Ancestral(), oracle).probabilities
    assert total_variation(distribution, distribution_over_coins(biased_repetition, 5, 5)) < 1e-14
    # The distribution differs if all calls share one toss.
    assert total_variation(distribution, distribution_over_coins(biased_repetition, 5, 5, fresh=False)) > 0.3


def test_reused_coins_sample_tuples_without_factoring() -> None:
    """Digit k of tuple number `coins` has the right distribution only if all calls share the coins."""
    tuples = SemiprimeTuples(1)
    states = [tuple(row) for row in tuples.states().tolist()]

    def digit(prefix: tuple[int, ...], coins: int) -> int:
        return states[coins][len(prefix)]

    uniform = dict.fromkeys(states, 1 / len(states))
    assert total_variation(distribution_over_coins(digit, 16, 4, fresh=False), uniform) < 1e-14
    assert total_variation(distribution_over_coins(digit, 16, 4), uniform) > 0.8


def test_numbers_of_gpt_4_fail_the_randomness_test() -> None:
    found = randomness_test(GPT4)
    assert found.first_statistic == pytest.approx(58.25)
    assert found.first_p == pytest.approx(1.0e-9, rel=0.05)
    assert found.rest_statistic == pytest.approx(24.5)
    assert found.rest_p == pytest.approx(0.0036, abs=5e-5)
    assert (found.distinct, found.distinct_chance) == (16, pytest.approx(0.1512))
    assert found.distinct_p == pytest.approx(7.5e-14, rel=0.01)


def test_uniform_numbers_pass_the_randomness_test() -> None:
    numbers = [int("".join(map(str, row))) for row in RandomNumbers(6).sample(2000, seed=5).tolist()]
    found = randomness_test(numbers)
    assert min(found.first_p, found.rest_p) > 1e-4
    assert 1e-4 < found.distinct_p < 1 - 1e-4
    assert randomness_test([number for number in numbers if number < 800_000]).first_p < 1e-10


def sample_token(token: int) -> None:
    exact_distribution(Ancestral(), derandomize(lambda prefix, coins: token, 2, 3, 2))


test_invalid_input_is_rejected = refusals(
    "^{}",
    [
        (lambda: distribution_over_coins(biased_repetition, 100, 5), r"outcomes=100: 100\^5 combinations"),
        *(
            (partial(randomness_test, numbers), "numbers=")
            for numbers in ((), (12, 123), (3, 4), (12_345_678_901,))
        ),
        *((partial(sample_token, token), f"token={token}: use tokens from 0 to 2") for token in (-1, 3)),
    ],
)
