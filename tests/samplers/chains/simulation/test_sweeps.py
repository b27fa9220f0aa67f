"""Properties of every simulation: its distribution, its start, and dependence on seed and chain number only."""

import pytest
import torch

from samplers.chains.simulation.reference_kernels import SIGNIFICANCE, p_value
from samplers.chains.small_models import ring
from trialogue.data import PottsChain
from trialogue.randomness import generator
from trialogue.samplers.chains.simulation.sweeps import METHODS, run_sweeps

KERNELS = ["heat-bath", "chromatic", "multispin"]


@pytest.mark.parametrize("method", KERNELS)
def test_states_follow_the_distribution(method):
    """The test detects couplings and fields that are 10% too small."""
    model, weaker = ring(5, 0.4, 0.2), ring(5, 0.36, 0.18)
    p = {
        tested: p_value(
            run_sweeps(tested, chains=2**15, sweeps=40, seed=1, method=method), model.probabilities()
        )
        for tested in (model, weaker)
    }
    assert p[weaker] < SIGNIFICANCE < p[model]


@pytest.mark.parametrize("method", KERNELS[:2])
def test_potts_chains_can_be_simulated(method):
    energy = torch.rand(3, 3, generator=generator(1, "energy"), dtype=torch.float64)
    model = PottsChain(energy).at(5, 0.5)
    tokens = run_sweeps(model, chains=2**14, sweeps=40, seed=1, method=method)
    assert p_value(tokens, model.probabilities(), 3) > SIGNIFICANCE


@pytest.mark.parametrize("method", KERNELS)
def test_chains_depend_on_seed_and_number_only(method, monkeypatch):
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
