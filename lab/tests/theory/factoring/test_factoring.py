"""Tests that exact generators of [pq, p, q] factor semiprimes, and of the cost of each order of the numbers."""

import math
from itertools import product

import pytest
import torch
from sympy import primerange

from trialogue.errors import InputError
from trialogue.models import Transformer, TransformerConfig
from trialogue.randomness import numpy_generator
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.hidden_streams import hidden_factors
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic
from trialogue_lab.data.puzzles.random_primes import RandomPrimes
from trialogue_lab.theory.factoring import reduction
from trialogue_lab.theory.factoring.overlap import best_generator_oracle, semiprime_masses
from uniform_rows import uniform_p_value


def run_algorithm(
    algorithm: reduction.PrimeByTrials | reduction.TupleByTrials, length: int, n: int, seed: int
) -> torch.Tensor:
    """Return sequences (n, length) of a randomized algorithm that tosses new coins in every call."""
    rows = []
    for sample in range(n):
        row: tuple[int, ...] = ()
        for place in range(length):
            row = (*row, algorithm.next_token(row, numpy_generator(seed, "coins", sample, place)))
        rows.append(row)
    return torch.tensor(rows)


@pytest.mark.parametrize(("digits", "count"), [(1, 10), (2, 231)])
def test_exact_generator_factors_every_semiprime(digits: int, count: int) -> None:
    oracle = SemiprimeTuples(digits)
    products = list(semiprime_masses(oracle))
    assert len(products) == count
    products = products[:: 1 if digits == 1 else 12]
    for number, factors in zip(products, reduction.factor_by_generating(oracle, products), strict=True):
        assert factors is not None
        assert math.prod(factors) == number
        assert reduction.digits_of_factors(number) == digits


def test_generator_with_success_rate_one_half_factors_half_of_the_products() -> None:
    tuples = SemiprimeTuples(1)
    oracle = best_generator_oracle(tuples, dict.fromkeys(semiprime_masses(tuples), 0.5))
    answers = reduction.factor_by_generating(oracle, [4] * 120)
    assert set(answers) == {None, (2, 2)}
    assert abs(sum(answer is not None for answer in answers) / 120 - 0.5) < 0.15
    network = Transformer(TransformerConfig(vocab_size=10, layers=1, heads=1, width=8, max_length=8))
    assert reduction.factor_by_generating(network, [143]) == [None]


def test_generator_with_the_wrong_sequence_length_is_rejected() -> None:
    with pytest.raises(InputError, match=r"^products=143: the generator writes 4 tokens, not 8"):
        reduction.factor_by_generating(SemiprimeTuples(1), [143])
    for oracle, tokens in ((SemiprimeTuples(3), 12), (hidden_factors(SemiprimeTuples(2)), 12)):
        with pytest.raises(InputError, match=f"^products=143: the generator writes {tokens} tokens, not 8"):
            reduction.factor_by_generating(oracle, [143])
    # A network with a larger maximum length ends its sequences itself.
    network = Transformer(TransformerConfig(vocab_size=10, layers=1, heads=1, width=8, max_length=12))
    assert reduction.factor_by_generating(network, [143]) == [None]
    for products in ([], [15, 143]):
        with pytest.raises(InputError, match=r"^products=\[.*the same number of digits"):
            reduction.factor_by_generating(SemiprimeTuples(2), products)


def test_primes_by_trials_are_uniform_with_the_expected_number_of_tests() -> None:
    arithmetic, primes = Arithmetic(), RandomPrimes(3)
    n = 1500
    rows = run_algorithm(reduction.PrimeByTrials(3, arithmetic), 3, n, seed=1)
    assert uniform_p_value(rows, primes.states()) > 1e-4
    # The test detects that the 21 of 143 primes that begin with 1 are missing.
    assert uniform_p_value(rows[rows[:, 0] > 1], primes.states()) < 1e-4
    trials = arithmetic.cost.primality_tests / n
    # The standard deviation of a geometric number of trials is about its mean.
    error = math.sqrt(float((primes.expected_trials() ** 2).sum()) / n)
    assert abs(trials - float(primes.expected_trials().sum())) < 5 * error


def test_prefix_without_primes_raises_an_error() -> None:
    coins = numpy_generator(0, "test")
    assert not list(primerange(1130, 1140))
    with pytest.raises(
        InputError, match=r"^tokens=\(1, 1, 3\): no 4-digit prime starts with this prefix, after 300"
    ):
        reduction.PrimeByTrials(4, Arithmetic(), most=300).next_token((1, 1, 3), coins)
    with pytest.raises(InputError, match=r"^tokens=\(0,\): no 4-digit prime starts with this prefix$"):
        reduction.PrimeByTrials(4, Arithmetic()).next_token((0,), coins)


@pytest.mark.parametrize(
    ("order", "prefix", "message"),
    [
        ("product-first", (9, 9, 9), "none of 200 random products starts with this prefix"),
        ("product-first", (0, 1, 4, 4), "give a product of two primes"),
        ("product-first", (0, 1, 4, 3, 1, 1, 2), "no tuple starts with this prefix"),
        ("product-first", (0, 1, 4, 3, 1, 1, 1, 3), "use a prefix of fewer than 8 tokens"),
        ("factors-first", (1, 1, 1, 3, 9), "no tuple starts with this prefix"),
    ],
)
def test_prefix_of_no_tuple_raises_an_error(order: str, prefix: tuple[int, ...], message: str) -> None:
    algorithm = reduction.TupleByTrials(2, order, Arithmetic(), most=200)
    with pytest.raises(InputError, match=message):
        algorithm.next_token(prefix, numpy_generator(0, "test"))


@pytest.mark.parametrize("order", ["product-first", "factors-first"])
def test_tuples_by_trials_are_uniform(order: str) -> None:
    tuples = SemiprimeTuples(1, order)
    rows = run_algorithm(reduction.TupleByTrials(1, order, Arithmetic()), 4, 800, seed=2)
    assert uniform_p_value(rows, tuples.states()) > 1e-4
    more = SemiprimeTuples(2, order)
    samples = run_algorithm(reduction.TupleByTrials(2, order, Arithmetic()), 8, 10, seed=3)
    assert bool(more.valid(samples).all())


def test_product_first_costs_divisions_and_factors_first_costs_primality_tests() -> None:
    """Three more digits cost slightly more tests if factors come first, and 1000 times the divisions otherwise."""
    easy = [reduction.second_number_cost(digits, "factors-first", 60, seed=1) for digits in (3, 6)]
    hard = [
        reduction.second_number_cost(
            digits, "product-first", 60, seed=1, arithmetic=Arithmetic("trial-division")
        )
        for digits in (3, 6)
    ]
    assert [cost.factorings for cost in easy] == [0, 0]
    assert [cost.factorings for cost in hard] == [60, 60]
    assert easy[1].primality_tests < 5 * easy[0].primality_tests
    assert 300 < hard[1].factoring_steps / hard[0].factoring_steps < 3000
    assert hard[1].primality_tests == 0


@pytest.mark.parametrize("divisions", [1, 2, 20, 400])
def test_share_factored_by_trial_division_agrees_with_enumeration(divisions: int) -> None:
    for digits in (1, 2, 3):
        primes = list(primerange(10 ** (digits - 1), 10**digits))
        reached = [*[2], *range(3, 2 * divisions, 2)]
        known = sum(min(p, q) <= reached[-1] for p, q in product(primes, repeat=2))
        assert reduction.share_factored(digits, divisions) == pytest.approx(known / len(primes) ** 2)


def test_digits_of_the_first_number_require_no_factoring() -> None:
    """A prefix of k digits takes as many trials, in expectation, as products have different prefixes of k digits."""
    samples = 400
    costs = reduction.first_number_costs(1, "product-first", samples, seed=3)
    products = [p * q for p, q in product((2, 3, 5, 7), repeat=2)]
    expected = [1, len({number // 10 for number in products})]
    assert [spent.multiplications / samples for spent in costs] == pytest.approx(expected, rel=0.2)
    assert all(spent.factorings == spent.factoring_steps == 0 for spent in costs)
    [easy] = reduction.first_number_costs(1, "factors-first", samples, seed=3)
    assert easy.multiplications == 0
    assert easy.primality_tests / samples == pytest.approx(9 / 4, rel=0.2)
