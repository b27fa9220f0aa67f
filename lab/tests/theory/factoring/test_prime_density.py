"""Primes from the integral of their density: exact distances, and the oracle that they belong to."""

import math
from itertools import pairwise

import pytest
import torch
from mpmath import li, mpf, workdps

from trialogue.errors import InputError
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution
from trialogue_lab.data.puzzles.random_primes import RandomPrimes
from trialogue_lab.theory.factoring.prime_density import (
    PrimesByDensity,
    density_integral,
    density_variation,
    uniform_variation,
)


def test_the_integral() -> None:
    numbers = [2, 3, 10, 1000, 123456]
    assert density_integral(numbers).tolist() == pytest.approx([float(li(number)) for number in numbers])
    assert density_integral([0, 1]).tolist() == pytest.approx([float(li(2))] * 2)


@pytest.mark.parametrize(
    ("digits", "first"),
    [(6, (0.0011, 0.0063, 0.0289)), (5, (0.0043, 0.0212, 0.0842)), (4, (0.0081, 0.0692, 0.2965))],
)
def test_known_distances(digits: int, first: tuple[float, ...]) -> None:
    assert density_variation(digits)[:3].tolist() == pytest.approx(first, abs=5e-5)
    assert uniform_variation(6)[:3].tolist() == pytest.approx((0.0192, 0.0198, 0.0343), abs=1e-4)


def test_counting_the_last_digits_stops_the_error() -> None:
    integral, hybrid = density_variation(6), density_variation(6, counted=4)
    assert hybrid[:2].tolist() == integral[:2].tolist()
    assert hybrid.max() < 0.01 < integral[2]
    assert hybrid[2:].tolist() == pytest.approx([float(hybrid[1])] * 4)
    assert density_variation(4, counted=4).max() < 1e-14


def gap_of_oracle(oracle: PrimesByDensity, counted: int) -> float:
    """How far the oracle's own law, by enumeration, is from the distances that were computed for it."""
    law = exact_distribution(Ancestral(), oracle).probabilities
    primes = {tuple(row) for row in RandomPrimes(oracle.digits).states().tolist()}
    computed = density_variation(oracle.digits, counted)
    worst = 0.0
    for length in range(1, oracle.digits + 1):
        shares: dict[tuple[int, ...], float] = {}
        for x, probability in law.items():
            shares[x[:length]] = shares.get(x[:length], 0.0) + probability
        for prime in primes:
            shares[prime[:length]] = shares.get(prime[:length], 0.0) - 1 / len(primes)
        worst = max(worst, abs(math.fsum(map(abs, shares.values())) / 2 - float(computed[length - 1])))
    return worst


@pytest.mark.parametrize(("digits", "counted"), [(2, 0), (3, 0), (3, 1), (3, 2), (3, 3)])
def test_the_oracle_is_what_the_distances_are_of(digits: int, counted: int) -> None:
    assert gap_of_oracle(PrimesByDensity(digits, counted), counted) < 1e-12


@pytest.mark.parametrize("digits", [1, 2, 17, 60])
def test_shares_of_long_numbers_are_not_lost_in_rounding(digits: int) -> None:
    """Against integrals of 1 / ln x with as many digits as their differences take, at the first place and the last."""
    oracle = PrimesByDensity(digits, counted=0)
    for written in {0, min(1, digits - 1), digits // 2, digits - 1}:
        prefix = ((3, 1, 4, 1, 5, 9, 2, 6, 5) * digits)[:written]
        weights = oracle.weights(prefix)
        with workdps(2 * digits + 40):
            block = mpf(10) ** (digits - written - 1)
            start = 10 * int("".join(map(str, prefix)) or "0")
            edges = [max((start + digit) * block, 2) for digit in range(11)]
            truth = [li(last) - li(first) for first, last in pairwise(edges)]
            if not prefix:
                truth[0] = mpf(0)
            shares = [float(value / sum(truth)) for value in truth]
        assert [weight / math.fsum(weights) for weight in weights] == pytest.approx(shares, rel=1e-13)


class FlatDensity(PrimesByDensity):
    """Takes primes for equally dense everywhere."""

    def weights(self, prefix):
        weights = super().weights(prefix)
        return [float(bool(weight)) for weight in weights] if len(prefix) == 1 else weights


def test_a_wrong_density_is_noticed() -> None:
    assert gap_of_oracle(FlatDensity(3, 1), 1) > 1e-4


def test_only_counted_digits_cost_primality_tests() -> None:
    oracle = PrimesByDensity(9, counted=2)
    oracle.weights((1, 2, 3))
    assert oracle.arithmetic.cost.primality_tests == 0
    oracle.weights((1, 2, 3, 4, 5, 6, 7))
    assert oracle.arithmetic.cost.primality_tests == 100
    oracle.weights((1, 2, 3, 4, 5, 6, 7, 8))
    assert oracle.arithmetic.cost.primality_tests == 110
    law = torch.tensor(oracle.weights(()))
    assert float(law[0]) == 0
    assert law[1:].tolist() == sorted(law[1:].tolist(), reverse=True)


@pytest.mark.parametrize("call", [lambda: PrimesByDensity(3, 4), lambda: density_variation(3, 4)])
def test_bad_input(call) -> None:
    with pytest.raises(InputError, match=r"^counted=4: use at most digits=3"):
        call()
