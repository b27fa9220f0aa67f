"""Methods that models of whole sequences inherit, and conversion of objects that only implement the methods."""

import pytest
import torch

from refusals import expect_error
from samplers.chains.small_models import Conditionals, Energies, random_joint
from trialogue.oracles import (
    Chain,
    Energy,
    Joint,
    Masked,
    Sequences,
    StepInfo,
    as_chain,
    as_model,
    enumerate_sequences,
)
from trialogue.samplers import Gibbs, run_chain
from trialogue.samplers.exact import transition_matrix

JOINT = random_joint(2, 3, 3)
STATES = enumerate_sequences(3, 3)


class MinimalMasked(Masked):
    """A masked oracle with only the required members."""

    vocab_size = 3

    def log_probs(self, tokens, masked):
        return Conditionals(JOINT).log_probs(tokens, masked)


class MinimalEnergy(Energy):
    """An energy with only the required members."""

    vocab_size = 3

    def energy(self, tokens):
        return Energies(JOINT).energy(tokens)


def test_a_masked_oracle_requires_only_log_probs():
    """Conditionals of single sites are computed with one mask per site."""
    model, expected = MinimalMasked(), Conditionals(JOINT).site_log_probs(STATES)
    assert torch.equal(model.site_log_probs(STATES), expected)
    sites = torch.arange(len(STATES)) % 3
    assert torch.equal(model.site_log_weights(STATES, sites), expected[torch.arange(len(STATES)), sites])
    assert model.block_log_weights(STATES, STATES > 0) is None
    assert (model.sites, model.device) == (None, None)


def test_an_energy_requires_only_energy():
    weights = MinimalEnergy().site_log_weights(STATES, torch.ones(len(STATES), dtype=torch.int64))
    expected = Conditionals(JOINT).site_log_probs(STATES)[:, 1]
    torch.testing.assert_close(weights.log_softmax(1), expected)
    matrix = transition_matrix(Gibbs(), MinimalEnergy(), sites=3)
    torch.testing.assert_close(matrix, transition_matrix(Gibbs(), Energies(JOINT)))


def test_classes_with_missing_methods_cannot_be_instantiated():
    for role in (Masked, Energy, Joint, Chain):
        with pytest.raises(TypeError, match="abstract"):
            role()


def test_an_object_with_the_methods_of_a_model_is_accepted():
    class Duck:
        vocab_size, sites = 3, 3

        def log_probs(self, tokens, masked):
            return MinimalMasked().log_probs(tokens, masked)

        def energy(self, tokens):
            return MinimalEnergy().energy(tokens)

    model = as_model(Duck())
    assert isinstance(model, Masked)
    assert isinstance(model, Energy)
    assert not isinstance(model, Joint)
    assert (type(model).__name__, model.sites, model.device) == ("Duck", 3, None)
    assert torch.equal(model.site_log_probs(STATES), MinimalMasked().site_log_probs(STATES))
    assert torch.equal(model.block_log_weights(STATES, STATES > 0), -Duck().energy(STATES))
    assert as_model(model) is model
    start = torch.zeros(20, 3, dtype=torch.int64)
    settings = {"start": start, "steps": 9, "seed": 1}
    assert torch.equal(
        run_chain(Gibbs(), Duck(), **settings).tokens, run_chain(Gibbs(), MinimalMasked(), **settings).tokens
    )


@pytest.mark.parametrize("model", [object(), type("Sized", (), {"vocab_size": 2})(), Chain])
def test_an_object_without_the_methods_of_a_model_is_rejected(model):
    expect_error("give a masked model or an energy", as_model, model)


def test_an_object_with_init_and_step_is_accepted_as_a_chain():
    class IdentityChain:
        def init(self, model, tokens):
            return Sequences(tokens)

        def step(self, model, state, choose):
            return state, StepInfo()

    chain = as_chain(IdentityChain())
    assert isinstance(chain, Chain)
    assert not chain.heat_bath
    assert as_chain(type("Hot", (IdentityChain,), {"heat_bath": True})()).heat_bath
    assert torch.equal(transition_matrix(IdentityChain(), Energies(JOINT)), torch.eye(27).double())
    assert as_chain(chain) is chain


def test_tokens_on_another_device_than_the_model_are_rejected():
    class OnAnotherDevice(MinimalEnergy):
        device = torch.device("meta")

    expect_error("move it to meta", run_chain, Gibbs(), OnAnotherDevice(), start=STATES, steps=1)
