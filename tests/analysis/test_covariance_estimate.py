"""Sampled covariances against exact ones, by table and by redrawn pairs, and mutants out by many errors."""

import pytest
import torch

from theory.random_models import SIX_BLOCKS, random_ising
from trialogue.analysis.covariance_estimate import monte_carlo_covariance
from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue.theory.masking.pseudolikelihood import asymptotic_covariance

MODEL = random_ising(4, "estimate", scale=0.3)


def state_law(tokens):
    """A law of six blocks that leans on how many spins are up."""
    up = tokens.sum(1).double()
    weights = torch.stack([1 + up * k / 4 for k in range(6)], 1)
    return weights / weights.sum(1, keepdim=True)


DESCRIPTIONS = {
    "one": {"block_size": 1},
    "three": {"block_size": 3},
    "weighted": {"blocks": SIX_BLOCKS, "weights": torch.tensor([0.3, 0.1, 0.1, 0.2, 0.1, 0.2])},
    "adaptive": {"blocks": SIX_BLOCKS, "law": state_law},
}


def deviation(estimate, exact):
    return abs(estimate.trace - float(exact.trace())) / estimate.trace_error


@pytest.mark.parametrize(
    ("name", "table_sites"),
    [*((name, 8) for name in DESCRIPTIONS), ("one", 0), ("three", 0), ("weighted", 0)],
)
def test_estimates_are_within_their_errors(name, table_sites):
    exact = asymptotic_covariance(MODEL, **DESCRIPTIONS[name])
    found = monte_carlo_covariance(MODEL, **DESCRIPTIONS[name], samples=8000, table_sites=table_sites)
    assert deviation(found, exact) < 5
    assert float(((found.covariance - exact).abs() / found.standard_error).max()) < 6
    assert found.trace_error < 0.05 * found.trace


def test_another_block_law_is_many_errors_away():
    for name, other in (("one", {"block_size": 2}), ("adaptive", {"blocks": SIX_BLOCKS})):
        exact = asymptotic_covariance(MODEL, **other)
        found = monte_carlo_covariance(MODEL, **DESCRIPTIONS[name], samples=8000)
        assert deviation(found, exact) > 10


def test_a_clique_beyond_enumeration():
    """Thirty sites; a block of all is maximum likelihood, where an independent spin has a field's variance."""
    model = Ising.clique(30, 3, coupling=0.2, field=0.3)
    fields_only = _Fields(model)
    found = monte_carlo_covariance(fields_only, 30, samples=4000)
    variance = 1 / (1 - torch.tanh(torch.tensor(0.3, dtype=torch.float64)) ** 2)
    apart = found.covariance.diagonal()[3:]
    assert float(((apart - variance).abs() / found.standard_error.diagonal()[3:]).max()) < 6


class _Fields:
    """The model with its fields as the only parameters."""

    def __init__(self, model):
        self._model = model
        self.sites, self.vocab_size = model.sites, model.vocab_size
        self.energy, self.sample, self.draw_block = model.energy, model.sample, model.draw_block

    def features(self, tokens):
        return (2 * tokens - 1).double()


def test_results_depend_on_the_seed_alone():
    first, again, other = (monte_carlo_covariance(MODEL, 2, samples=100, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.covariance, again.covariance)
    assert not torch.equal(first.covariance, other.covariance)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"block_size": 5}, "block_size"),
        ({}, "block_size"),
        ({"block_size": 2, "weights": torch.ones(1)}, "blocks"),
        ({"block_size": 2, "samples": 10}, "samples"),
        ({"block_size": 2, "tokens": torch.zeros(100, 3, dtype=torch.int64)}, "tokens"),
        ({"block_size": 1, "tokens": torch.zeros(100, 4, dtype=torch.int64)}, "samples"),
        ({"blocks": SIX_BLOCKS, "weights": torch.tensor([1.0, 0, 0, 0, 0, 0])}, "blocks"),
        ({"blocks": SIX_BLOCKS, "weights": torch.ones(3)}, "weights"),
        ({"blocks": SIX_BLOCKS, "law": lambda tokens: -torch.ones(len(tokens), 6)}, "law"),
        ({"blocks": SIX_BLOCKS, "law": state_law, "table_sites": 2}, "table_sites"),
        # Masks would be drawn as if each row summed to one, and scored as if none had to.
        ({"blocks": SIX_BLOCKS, "law": lambda tokens: 1 + tokens.sum(1, keepdim=True).expand(-1, 6)}, "law"),
        ({"blocks": SIX_BLOCKS, "law": torch.full((16, 6), 1 / 6)}, "law"),
        ({"block_size": 2, "tokens": torch.full((100, 4), 2)}, "tokens"),
        ({"block_size": 2, "tokens": torch.zeros(100, 4)}, "tokens"),
        ({"block_size": 2, "table_sites": -1}, "table_sites"),
    ],
)
def test_bad_input_is_refused(given, field):
    with pytest.raises(InputError) as caught:
        monte_carlo_covariance(MODEL, **given)
    assert caught.value.field == field
