"""Algorithms given to `run_algorithm` know the output so far and fresh coins: one that keeps more is noticed."""

import numpy as np
import pytest
import torch

from trialogue.data.puzzles.weighted_prefixes import Prefix, digits_of
from trialogue.errors import InputError
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic
from trialogue_lab.data.puzzles.random_primes import primes_of
from trialogue_lab.theory.factoring.randomized_algorithms import run_algorithm
from trialogue_lab.theory.factoring.reduction import PrimeByTrials, TupleByTrials


class KeepsFactors:
    """Draws p and q at the first token and keeps them: the tuple comes out right, at no cost."""

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        if not prefix:
            self.p, self.q = coins.choice(primes_of(2), 2).tolist()
        return (*digits_of(self.p * self.q, 4), *digits_of(self.p, 2), *digits_of(self.q, 2))[len(prefix)]


class Redraws(KeepsFactors):
    """Keeps them as long as what is written is what it wrote last."""

    written: Prefix = ()

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        if prefix != self.written:
            self.p, self.q = coins.choice(primes_of(2), 2).tolist()
        token = super().next_token(prefix, coins)
        self.written = (*prefix, token)
        return token


class OwnCoins:
    """Tosses coins of its own."""

    def __init__(self) -> None:
        self.tosses = 0

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        self.tosses += 1
        return self.tosses % 10


class Counts:
    """Answers by the prefix alone, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> int:
        self.calls += 1
        return len(prefix)


class Says:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def next_token(self, prefix: Prefix, coins: np.random.Generator) -> object:
        return self.answer


@pytest.mark.parametrize("kind", [KeepsFactors, Redraws, OwnCoins])
@pytest.mark.parametrize("n", [1, 3])
def test_what_keeps_something_between_calls_is_noticed(kind: type[KeepsFactors], n: int) -> None:
    with pytest.raises(
        InputError, match=f"^algorithm='{kind.__name__}': it keeps something between calls"
    ) as error:
        run_algorithm(kind(), 8, n)
    assert "\n" not in str(error.value)


def test_what_keeps_nothing_runs_and_is_not_counted_twice() -> None:
    algorithm, arithmetic = Counts(), Arithmetic()
    assert run_algorithm(algorithm, 3, 5).tolist() == [[0, 1, 2]] * 5
    assert algorithm.calls == 15
    run_algorithm(PrimeByTrials(2, arithmetic), 2, 1, seed=4)
    spent = arithmetic.cost
    for other in (PrimeByTrials(2, arithmetic), TupleByTrials(1, "factors-first", Arithmetic())):
        assert run_algorithm(other, 2, 1, seed=4).shape == (1, 2)
    assert (arithmetic.cost - spent) == spent


@pytest.mark.parametrize("answer", [1.5, "1", None, True, -1, np.ones(1)], ids=repr)
def test_tokens_are_whole_numbers(answer: object) -> None:
    with pytest.raises(InputError, match=r"^next_token=.*: use "):
        run_algorithm(Says(answer), 1, 1)


def test_tokens_of_numpy_are_tokens() -> None:
    assert torch.equal(run_algorithm(Says(np.int64(3)), 2, 1), torch.tensor([[3, 3]]))
