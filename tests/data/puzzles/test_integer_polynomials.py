"""Compare polynomials with integer roots with NumPy and with enumeration."""

import itertools
import math

import numpy as np
import pytest
import torch

from refusals import expect_error
from trialogue.data.puzzles.integer_polynomials import RootedPolynomials
from trialogue.errors import InputError
from trialogue.samplers import Ancestral, generate
from trialogue.samplers.exact import exact_distribution, total_variation

ORDERS = ("coefficients-first", "roots-first")


def brute_force(degree: int, largest: int, order: str, offset: int) -> dict[tuple[int, ...], float]:
    choices = list(itertools.product(range(-largest, largest + 1), repeat=degree))
    distribution = {}
    for roots in choices:
        coefficients = np.poly(roots).round().astype(int)[1:].tolist()
        parts = [*coefficients, *roots] if order == "coefficients-first" else [*roots, *coefficients]
        distribution[tuple(part + offset for part in parts)] = 1 / len(choices)
    return distribution


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("degree", "largest"), [(1, 2), (2, 3), (3, 2)])
def test_oracle_has_the_exact_distribution(degree, largest, order):
    polynomials = RootedPolynomials(degree, largest, order)
    truth = brute_force(degree, largest, order, polynomials.offset)
    distribution = exact_distribution(Ancestral(), polynomials).probabilities
    assert total_variation(distribution, truth) < 1e-12
    assert set(map(tuple, polynomials.states().tolist())) == set(truth)
    assert polynomials.probabilities().tolist() == pytest.approx([1 / len(truth)] * len(truth))
    # Sorted roots have a different distribution.
    if degree > 1:
        kept = {x: p for x, p in truth.items() if x[degree:] == tuple(sorted(x[degree:]))}
        total = sum(kept.values())
        assert total_variation(distribution, {x: p / total for x, p in kept.items()}) > 0.1


@pytest.mark.parametrize("order", ORDERS)
def test_samples_are_valid_polynomials(order):
    polynomials = RootedPolynomials(3, 4, order)
    drawn = polynomials.sample(300, seed=1)
    assert bool(polynomials.valid(drawn).all())
    assert torch.equal(polynomials.sample(10, seed=1), drawn[:10])
    _, roots = polynomials.decode(drawn)
    assert sorted(roots.unique().tolist()) == list(range(-4, 5))
    assert bool(polynomials.valid(generate(polynomials, num_samples=20).tokens).all())
    shifted = drawn.clone()
    shifted[:, -1] = (shifted[:, -1] + 1) % polynomials.vocab_size
    assert not bool(polynomials.valid(shifted).any())


def test_invalid_input_is_reported():
    expect_error(r"^degree=8: .*5764801 choices of roots", RootedPolynomials(8, 3).states)
    expect_error(
        r"^degree=40: .*roots up to 9 give coefficients of more than 62 bits", RootedPolynomials, 40, 9
    )
    with pytest.raises(InputError, match=r"^tokens=\(3, 3\): give a matrix \(n, 4\)"):
        RootedPolynomials(2, 3).valid(torch.zeros(3, 3, dtype=torch.int64))


def test_numpy_integers_do_not_overflow():
    assert RootedPolynomials(np.int32(12), np.int32(8)).offset == RootedPolynomials(12, 8).offset  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ORDERS)
def test_polynomials_that_cannot_be_listed_are_sampled(order):
    polynomials = RootedPolynomials(14, 9, order)
    drawn = polynomials.sample(20, seed=5)
    assert bool(polynomials.valid(drawn).all())
    for coefficients, roots in zip(*(part.tolist() for part in polynomials.decode(drawn)), strict=True):
        for x in (-3, 2, 11):
            value = sum(c * x ** (13 - k) for k, c in enumerate(coefficients)) + x**14
            assert value == math.prod(x - root for root in roots)
