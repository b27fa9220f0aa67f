"""Tests of random numbers and primes digit by digit, and of counted arithmetic operations."""

import math

import pytest
import torch
from sympy import isprime, nextprime, primerange

from one_line_errors import refusals
from refusals import expect_error
from trialogue.samplers import Ancestral, generate
from trialogue.samplers.exact import exact_distribution
from trialogue_lab.data.puzzles.metered_arithmetic import Arithmetic, Operations
from trialogue_lab.data.puzzles.random_primes import RandomNumbers, RandomPrimes


def test_six_random_digits_are_uniform() -> None:
    """All 900,000 numbers are equally likely, because conditionals are uniform and no number begins with zero."""
    numbers = RandomNumbers(6)
    assert numbers.size == 900_000
    assert list(numbers.weights(())) == [0.0] + [1.0] * 9
    assert all(list(numbers.weights(prefix)) == [1.0] * 10 for prefix in ((1,), (9, 0), (5, 0, 0, 0, 0)))
    assert list(numbers.weights((1,) * 6)) == list(numbers.weights((0, 1))) == [0.0] * 10
    samples = numbers.sample(2000, seed=1)
    assert (int(samples[:, 0].min()), int(samples.min()), int(samples.max())) == (1, 0, 9)
    assert set(exact_distribution(Ancestral(), RandomNumbers(2)).probabilities) == {
        tuple(row) for row in RandomNumbers(2).states().tolist()
    }


def largest_error(oracle: RandomPrimes) -> float:
    found = exact_distribution(Ancestral(), oracle).probabilities
    expected = {
        tuple(map(int, str(p))): 1.0 for p in primerange(10 ** (oracle.digits - 1), 10**oracle.digits)
    }
    return max(
        abs(found.get(x, 0.0) - expected.get(x, 0.0) / len(expected)) for x in found.keys() | expected.keys()
    )


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_random_primes_are_exactly_uniform(digits: int) -> None:
    assert largest_error(RandomPrimes(digits)) < 1e-15


def test_expected_trials_agree_with_published_values() -> None:
    trials = [RandomPrimes(digits).expected_trials() for digits in range(1, 7)]
    assert [float(each[0]) for each in trials] == pytest.approx(
        [2.25, 4.29, 6.29, 8.48, 10.76, 13.06], abs=0.005
    )
    assert [float(each[-1]) for each in trials] == pytest.approx(
        [2.25, 4.29, 5.80, 6.49, 7.20, 7.63], abs=0.006
    )
    for digits, each in enumerate(trials, 1):
        assert float(each.max()) == pytest.approx(9 * 10 ** (digits - 1) / RandomPrimes(digits).size)


def test_long_primes_are_sampled_by_rejection() -> None:
    samples = RandomPrimes(20).sample(4, seed=2)
    assert all(isprime(int("".join(map(str, row)))) and row[0] for row in samples.tolist())
    assert torch.equal(RandomPrimes(20).sample(2, seed=2), samples[:2])
    expect_error(r"^digits=20: there are about 2\.0e\+18 such primes", RandomPrimes(20).weights, ())


test_prefixes_without_primes_are_rejected = refusals(
    "{}",
    [
        (lambda: generate(RandomPrimes(2), [[0]]), r"^tokens=\(0,\): use a prefix of a sequence"),
        (lambda: RandomPrimes(400).weights(()), r"^digits=400: there are about 9\.8e\+396 such primes"),
    ],
)


@pytest.mark.parametrize("factoring", ["pollard-rho", "trial-division"])
def test_factoring_agrees_with_known_factors(factoring: str) -> None:
    arithmetic = Arithmetic(factoring)
    small = list(primerange(2, 60))
    for p in small:
        for q in small:
            assert arithmetic.factor(p * q) == (min(p, q), max(p, q))
    for number in (0, 1, 2, 3, 4 * 3, 7, 97, 2 * 3 * 5, 5**3, 9973, 101**4):
        expect_error(f"^semiprime={number}: give a product of two primes", arithmetic.factor, number)


def test_numbers_of_factoring_steps_agree_with_theory() -> None:
    def steps(factoring: str, digits: int) -> int:
        arithmetic = Arithmetic(factoring)
        p, q = nextprime(3 * 10 ** (digits - 1)), nextprime(7 * 10 ** (digits - 1))
        assert arithmetic.factor(p * q) == (p, q)
        return arithmetic.cost.factoring_steps

    # The divisor 2, and odd divisors from 3 to the smaller factor.
    assert [steps("trial-division", digits) for digits in (2, 3, 6)] == [
        (nextprime(3 * 10 ** (digits - 1)) - 1) // 2 + 1 for digits in (2, 3, 6)
    ]
    # About the square root of a factor, with a constant that is rarely above 6, and three iterations per step.
    assert all(
        0 < steps("pollard-rho", digits) < 18 * math.sqrt(3 * 10 ** (digits - 1)) for digits in (3, 6, 9)
    )


def test_operations_are_counted() -> None:
    arithmetic = Arithmetic("trial-division")
    before = arithmetic.cost
    assert arithmetic.is_prime(97)
    assert not arithmetic.is_prime(91)
    assert (arithmetic.product(6, 7), arithmetic.quotient(43, 7)) == (42, 6)
    arithmetic.factor(15)
    arithmetic.read(5)
    assert arithmetic.cost - before == Operations(2, 2, 1, 2, 5)
    expect_error(r"^divisor=0", arithmetic.quotient, 5, 0)
    expect_error("numbers below 2\\^63", arithmetic.factor, 10**20)
