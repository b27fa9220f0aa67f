"""Multispin coding: thresholds of 52 bits, every bit of every chain, and rejected models."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from refusals import expect_error
from samplers.chains.simulation.reference_kernels import disordered, multispin, star
from samplers.chains.small_models import ring
from trialogue.data import Ising, window_tables
from trialogue.data.ising.neighbourhoods import SiteClass
from trialogue.samplers.chains.simulation.multispin import Multispin, spin_thresholds
from trialogue.samplers.chains.simulation.multispin_kernels import WORDS
from trialogue.samplers.chains.simulation.sweeps import run_sweeps


@pytest.mark.parametrize("coupling", [0.5, -0.3, 1e-9, 30.0, -400.0])
@pytest.mark.parametrize(("count", "field"), [(0, 0.2), (1, 0.0), (2, 0.0), (2, 0.1), (5, 0.0), (6, -0.7)])
def test_every_threshold_is_the_exact_conditional(coupling, count, field):
    kind = SiteClass((coupling,) if count else (), (count,) if count else (), field)
    thresholds, column, flip = spin_thresholds(kind)
    local = coupling * (2.0 * np.arange(count + 1) - count) * (count > 0) + field
    found = [thresholds[c] / 2**52 for c in column]
    found = [1 - p if flipped else p for p, flipped in zip(found, flip, strict=True)]
    # Half a unit of 2^-52, and the same for each of the two float64 results.
    assert found == pytest.approx(expit(2 * local).tolist(), rel=0, abs=2.0**-51)
    assert all(0 <= threshold < 2**52 for threshold in thresholds)
    if not field:
        # A symmetric distribution needs half of the comparisons.
        assert len(thresholds) <= count // 2 + 1


MODELS = {
    "ring": ring(5, 0.4),
    "ring with field": ring(5, -0.3, 0.2),
    "star": star(6),
    "clique": Ising.clique(6, 4, 0.3, 0.1),
}


@pytest.mark.parametrize("name", MODELS)
def test_chains_equal_the_reference_with_the_same_bits(name):
    simulation = Multispin(MODELS[name], 64 * WORDS, 3)
    for _ in range(2):
        simulation.advance(1)
    assert simulation.tokens.tolist() == multispin(MODELS[name], WORDS, 3, 2)


def test_models_with_different_couplings_are_rejected():
    for model in (disordered(5), window_tables(torch.zeros(2, 2), 5)):
        expect_error("multispin", run_sweeps, model, chains=1, sweeps=1, method="multispin")
