"""What every simulation keeps to: its distribution, its start, and chains that depend on seed and number alone."""

import pytest
import torch

from samplers.chains.simulation.reference_kernels import ALPHA, p_value, ring
from trialogue.data import PottsChain
from trialogue.randomness import generator
from trialogue.samplers.chains.simulation.sweeps import METHODS, run_sweeps

KERNELS = ["heat-bath", "chromatic", "multispin"]


@pytest.mark.parametrize("method", KERNELS)
def test_states_follow_the_distribution(method):
    """Couplings and fields that are a tenth too small are noticed."""
    model, weaker = ring(5, 0.4, 0.2), ring(5, 0.36, 0.18)
    p = {
        one: p_value(run_sweeps(one, chains=2**15, sweeps=40, seed=1, method=method), model.probabilities())
        for one in (model, weaker)
    }
    assert p[weaker] < ALPHA < p[model]


@pytest.mark.parametrize("method", KERNELS[:2])
def test_potts_chains_are_models_too(method):
    energy = torch.rand(3, 3, generator=generator(1, "energy"), dtype=torch.float64)
    model = PottsChain(energy).at(5, 0.5)
    tokens = run_sweeps(model, chains=2**14, sweeps=40, seed=1, method=method)
    assert p_value(tokens, model.probabilities(), 3) > ALPHA


@pytest.mark.parametrize("method", KERNELS)
def test_chains_depend_on_seed_and_number_alone(method, monkeypatch):
    model, settings = ring(12, 0.5, 0.1), {"sweeps": 5, "method": method}
    many = run_sweeps(model, chains=4200, seed=4, **settings)
    assert torch.equal(run_sweeps(model, chains=70, seed=4, **settings), many[:70])
    assert not torch.equal(run_sweeps(model, chains=4200, seed=5, **settings), many)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(run_sweeps(model, chains=4200, seed=4, **settings), many)
    assert len(many.unique(dim=0)) > 300
    simulation = METHODS[method](model, 4200, 4)
    simulation.advance(2)
    simulation.advance(3)
    assert torch.equal(simulation.tokens, many)
    start = many[:200]
    assert torch.equal(METHODS[method](model, 200, 0, start).tokens, start)
