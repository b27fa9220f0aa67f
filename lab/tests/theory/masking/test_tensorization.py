"""Approximate tensorization: printed constants, certified witnesses, contraction, and a certain bound from above."""

import math

import pytest
import torch

from theory.random_models import random_ising, random_simplex
from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue_lab.theory.masking.block_laws import block_dynamics, block_law
from trialogue_lab.theory.masking.mixing import poincare_constant
from trialogue_lab.theory.masking.tensorization import (
    approximate_tensorization,
    block_divergence,
    tensorization_upper_bound,
)


def kl(r, q):
    return float(torch.where(r > 0, r * (r.clamp_min(1e-300) / q).log(), 0.0).sum())


def clique(sites, coupling, field):
    return Ising.clique(sites, sites, coupling=coupling, field=field).probabilities()


@pytest.mark.parametrize(
    ("sites", "coupling", "field", "size", "expected", "poincare"),
    [
        (2, 0.0, 0.1, 1, 2.0, 2.0),
        (3, 0.0, 0.1, 1, 3.0, 3.0),
        (3, 0.0, 0.1, 2, 1.5, 1.5),
        (3, 0.0, 0.1, 3, 1.0, 1.0),
        (2, 0.5, 0.1, 1, 3.710, 3.693),
        (3, 0.2, 0.1, 1, 4.830, 4.804),
        (3, 0.2, 0.1, 2, 1.957, 1.951),
        (3, 0.5, 0.0, 1, 12.584, 12.584),
        (3, 0.5, 0.0, 2, 3.896, 3.896),
    ],
)
def test_printed_constants(sites, coupling, field, size, expected, poincare):
    p, law = clique(sites, coupling, field), block_law(sites, 2, block_size=size)
    found = approximate_tensorization(p, law, starts=2)
    assert found.lower_bound == pytest.approx(expected, abs=6e-4)
    constant = poincare_constant(block_dynamics(p, law))
    assert constant == pytest.approx(poincare, abs=6e-4)
    assert found.lower_bound > constant * (1 - 1e-8)
    assert float(found.witness.sum()) == pytest.approx(1)


def test_the_ratio_by_loops():
    """Adaptive law: both relative entropies written out over states and blocks."""
    q, r, given = random_simplex(8, names="q"), random_simplex(8, names="r"), random_simplex(8, 3)
    law = block_law(3, 2, blocks=[[0], [1, 2], [0, 2]], distribution=given)
    total = 0.0
    for k in range(3):
        for fibre in law.completions(k):
            first, second = (r * given[:, k])[fibre], (q * given[:, k])[fibre]
            total += float(first.sum()) * kl(first / first.sum(), second / second.sum())
    assert block_divergence(r, q, law) == pytest.approx(total, abs=1e-14)


def test_the_witness_certifies_the_bound():
    q, law = random_ising(3).probabilities(), block_law(3, 2, blocks=[[0, 1], [2]], weights=[0.3, 0.7])
    found = approximate_tensorization(q, law, starts=2)
    ratio = kl(found.witness, q) / block_divergence(found.witness, q, law)
    assert ratio == pytest.approx(found.lower_bound, rel=1e-6)


def test_entropy_near_the_law_does_not_cancel():
    q = random_simplex(8)
    tilt = torch.linspace(-1, 1, 8, dtype=torch.float64)
    tilt = tilt - q @ tilt
    whole = block_law(3, 2, block_size=3)
    for size in (1e-2, 1e-5, 1e-7):
        expected = size**2 / 2 * float(q @ tilt**2)
        assert block_divergence(q * (1 + size * tilt), q, whole) == pytest.approx(expected, rel=2 * size)


def test_laws_without_a_constant_are_refused():
    with pytest.raises(InputError, match="positive everywhere"):
        approximate_tensorization(torch.tensor([0.5, 0.5, 0.0, 0.0]), block_law(2, 2, block_size=1))


def test_the_bound_from_above_is_above_every_witness():
    for place in range(6):
        q = random_ising(3, place, scale=0.4).probabilities()
        for size in (1, 2):
            law = block_law(3, 2, block_size=size)
            assert approximate_tensorization(q, law, starts=1).lower_bound <= tensorization_upper_bound(
                q, law
            )


def test_the_bound_from_above_is_attained_by_product_laws():
    product = Ising.clique(3, 3, coupling=0.0, field=0.4).probabilities()
    for size in (1, 2, 3):
        assert tensorization_upper_bound(product, block_law(3, 2, block_size=size)) == pytest.approx(3 / size)
    weighted = block_law(3, 2, blocks=[[0, 1], [2]], weights=[0.3, 0.7])
    assert tensorization_upper_bound(product, weighted) == pytest.approx(1 / 0.3)
    # Two spins: no product fits J x_1 x_2 better than one without coupling, and the ratio is exp(2 J).
    coupled = Ising.clique(2, 2, coupling=0.3, field=0.2).probabilities()
    bound = tensorization_upper_bound(coupled, block_law(2, 2, block_size=1))
    assert bound == pytest.approx(2 * math.exp(0.6), rel=1e-7)


def test_a_bound_from_above_needs_a_law_of_blocks_alone():
    adaptive = block_law(2, 2, blocks=[[0], [1]], distribution=random_simplex(4, 2))
    with pytest.raises(InputError, match=r"^law='adaptive'"):
        tensorization_upper_bound(random_simplex(4), adaptive)
