"""Approximate tensorization: printed constants, certified witnesses, contraction, and the bound of Theorem 4.1.4."""

import math

import pytest
import torch

from theory.random_models import random_ising, random_simplex
from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.theory.masking.block_laws import block_dynamics, block_law
from trialogue.theory.masking.mixing import poincare_constant
from trialogue.theory.masking.pseudolikelihood import pseudolikelihood_loss
from trialogue.theory.masking.tensorization import (
    approximate_tensorization,
    block_divergence,
    empirical_law_bound,
    mask_average_bound,
    sample_bound,
    smallest_conditional,
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
    law = block_law(3, 2, blocks=[[0], [1, 2], [0, 2]], law=given)
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


@pytest.mark.parametrize("size", [1, 2])
def test_one_step_contracts_by_the_constant(size):
    q, law = clique(3, 0.2, 0.1), block_law(3, 2, block_size=size)
    matrix, constant = block_dynamics(q, law), approximate_tensorization(q, law, starts=2).lower_bound
    laws = random_simplex(300, 8, names="contraction")
    before = torch.tensor([kl(r, q) for r in laws])
    after = torch.tensor([kl(r @ matrix, q) for r in laws])
    assert bool((after <= (1 - 1 / constant) * before + 1e-12).all())


def test_continuous_time_decays_at_one_over_the_constant_and_not_twice_that():
    """One block of all sites has C_AT = 1 and p_t = e^{-t} p_0 + (1 - e^{-t}) q."""
    q = torch.cat((torch.tensor([1e-4], dtype=torch.float64), (1 - 1e-4) * random_simplex(7)))
    start = torch.eye(8, dtype=torch.float64)[0]
    later = kl(math.exp(-1) * start + (1 - math.exp(-1)) * q, q)
    assert later == pytest.approx(2.731, abs=1e-3)
    assert later <= math.exp(-1) * kl(start, q)
    assert later > math.exp(-2) * kl(start, q)


GIVEN = {
    "sites": 2,
    "vocab_size": 2,
    "samples": 10**6,
    "masks": 10**6,
    "tensorization": 2.0,
    "loss": 0.0,
    "beta": 0.05,
    "cells": 100,
    "eps": 0.1,
    "delta": 0.1,
}


def test_printed_sample_bounds():
    assert sample_bound(**GIVEN).bound == pytest.approx(1.283, abs=6e-4)
    small = {**GIVEN, "sites": 1, "samples": 10**4, "masks": 10**4, "tensorization": 1.0}
    assert sample_bound(**small).bound == pytest.approx(1.437, abs=6e-4)
    assert empirical_law_bound(sites=3, vocab_size=2, samples=1000, delta=0.3) == pytest.approx(
        0.327, abs=6e-4
    )


def test_bounds_beyond_a_float_are_infinite():
    many = {"sites": 400, "vocab_size": 2, "samples": 10, "delta": 0.1}
    assert empirical_law_bound(**many) == pytest.approx(math.exp(600 * math.log(2)) / 4, rel=1e-9)
    assert empirical_law_bound(**{**many, "sites": 800}) == math.inf
    assert mask_average_bound(**{**many, "sites": 800}, masks=1, beta=0.1) == math.inf
    assert sample_bound(**{**GIVEN, "sites": 800}).bound == math.inf


def test_the_theorem_is_its_two_halves_at_half_the_risk():
    bound = sample_bound(**GIVEN)
    half = {key: GIVEN[key] for key in ("sites", "vocab_size", "samples")}
    assert bound.samples_term == pytest.approx(empirical_law_bound(**half, delta=0.05))
    one_cell = mask_average_bound(**half, masks=GIVEN["masks"], beta=GIVEN["beta"], delta=0.05)
    term = sample_bound(**{**GIVEN, "cells": 1}).masks_term
    assert term * math.log(1 / GIVEN["beta"]) == pytest.approx(one_cell)


def test_empirical_laws_stay_within_their_bound():
    p, samples, delta = clique(3, 0.3, 0.1), 1000, 0.3
    draws = torch.multinomial(p, 200 * samples, True, generator=generator(0, "empirical")).view(200, samples)
    counts = torch.stack([torch.bincount(row, minlength=8) for row in draws]) / samples
    distances = (counts - p).abs().sum(1) / 2
    assert float(distances.quantile(1 - delta)) == pytest.approx(0.036, abs=0.006)
    bound = empirical_law_bound(sites=3, vocab_size=2, samples=samples, delta=delta)
    assert float((distances < bound).double().mean()) == 1.0


def test_the_theorem_holds_at_the_empirical_law():
    """theta^ = the smoothed empirical law; its loss as a likelihood contains the conditional entropy."""
    p, law = clique(2, 0.5, 0.1), block_law(2, 2, block_size=1)
    draws = torch.multinomial(p, 20 * 500, True, generator=generator(0, "theorem")).view(20, 500)
    for row in draws:
        fit = (torch.bincount(row, minlength=4) + 1.0) / 504
        loss = float(pseudolikelihood_loss(torch.bincount(row, minlength=4) / 500, fit.double().log(), law))
        assert loss > 0.3
        constant = approximate_tensorization(fit.double() / fit.double().sum(), law, starts=0).lower_bound
        beta = smallest_conditional(fit.double(), law)
        bound = sample_bound(
            **{**GIVEN, "samples": 500, "masks": 1, "loss": loss, "beta": beta, "tensorization": constant}
        )
        assert float((fit - p).abs().sum()) / 2 < bound.bound


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"beta": 0.0}, "beta"),
        ({"beta": 1.0}, "beta"),
        ({"tensorization": 0.5}, "tensorization"),
        ({"tensorization": math.nan}, "tensorization"),
        ({"loss": -1.0}, "loss"),
        ({"cells": 0}, "cells"),
        ({"eps": math.inf}, "eps"),
        ({"samples": 0}, "samples"),
        ({"masks": 0}, "masks"),
    ],
)
def test_bad_input_is_refused(change, field):
    with pytest.raises(InputError) as caught:
        sample_bound(**{**GIVEN, **change})
    assert caught.value.field == field


def test_laws_without_a_constant_are_refused():
    with pytest.raises(InputError, match="positive everywhere"):
        approximate_tensorization(torch.tensor([0.5, 0.5, 0.0, 0.0]), block_law(2, 2, block_size=1))
