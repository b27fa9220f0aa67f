"""What a model of whole sequences inherits, and what is made of objects that only have its methods."""

import pytest
import torch

from samplers.chains.small_models import Conditionals, Energies, random_joint
from trialogue.errors import InputError
from trialogue.oracles import (
    Chain,
    Energy,
    Joint,
    Masked,
    Sequences,
    StepInfo,
    as_chain,
    as_model,
    whole_sequences,
)
from trialogue.samplers import Gibbs, run_chain
from trialogue.samplers.exact import transition_matrix

LAW = random_joint(2, 3, 3)
STATES = whole_sequences(3, 3)


class Asked(Masked):
    """A masked oracle that states what it must, and nothing else."""

    vocab_size = 3

    def log_probs(self, tokens, masked):
        return Conditionals(LAW).log_probs(tokens, masked)


class Weighed(Energy):
    """An energy that states what it must."""

    vocab_size = 3

    def energy(self, tokens):
        return Energies(LAW).energy(tokens)


def test_a_masked_oracle_is_one_method():
    """Single sites are asked about with a mask each."""
    model, expected = Asked(), Conditionals(LAW).site_log_probs(STATES)
    assert torch.equal(model.site_log_probs(STATES), expected)
    sites = torch.arange(len(STATES)) % 3
    assert torch.equal(model.site_log_weights(STATES, sites), expected[torch.arange(len(STATES)), sites])
    assert model.block_log_weights(STATES, STATES > 0) is None
    assert (model.sites, model.device) == (None, None)


def test_an_energy_is_one_method():
    weights = Weighed().site_log_weights(STATES, torch.ones(len(STATES), dtype=torch.int64))
    expected = Conditionals(LAW).site_log_probs(STATES)[:, 1]
    torch.testing.assert_close(weights.log_softmax(1), expected)
    matrix = transition_matrix(Gibbs(), Weighed(), sites=3)
    torch.testing.assert_close(matrix, transition_matrix(Gibbs(), Energies(LAW)))


def test_what_is_not_stated_cannot_be_made():
    for role in (Masked, Energy, Joint, Chain):
        with pytest.raises(TypeError, match="abstract"):
            role()


def test_an_object_with_the_methods_is_a_model():
    class Duck:
        vocab_size, sites = 3, 3

        def log_probs(self, tokens, masked):
            return Asked().log_probs(tokens, masked)

        def energy(self, tokens):
            return Weighed().energy(tokens)

    model = as_model(Duck())
    assert isinstance(model, Masked)
    assert isinstance(model, Energy)
    assert not isinstance(model, Joint)
    assert (type(model).__name__, model.sites, model.device) == ("Duck", 3, None)
    assert torch.equal(model.site_log_probs(STATES), Asked().site_log_probs(STATES))
    assert torch.equal(model.block_log_weights(STATES, STATES > 0), -Duck().energy(STATES))
    assert as_model(model) is model
    start = torch.zeros(20, 3, dtype=torch.int64)
    settings = {"start": start, "steps": 9, "seed": 1}
    assert torch.equal(
        run_chain(Gibbs(), Duck(), **settings).tokens, run_chain(Gibbs(), Asked(), **settings).tokens
    )


@pytest.mark.parametrize("model", [object(), type("Sized", (), {"vocab_size": 2})(), Chain])
def test_what_has_none_of_the_methods_is_no_model(model):
    with pytest.raises(InputError, match="give a masked model or an energy"):
        as_model(model)


def test_an_object_with_init_and_step_is_a_chain():
    class Still:
        def init(self, model, tokens):
            return Sequences(tokens)

        def step(self, model, state, choose):
            return state, StepInfo()

    chain = as_chain(Still())
    assert isinstance(chain, Chain)
    assert not chain.heat_bath
    assert as_chain(type("Hot", (Still,), {"heat_bath": True})()).heat_bath
    assert torch.equal(transition_matrix(Still(), Energies(LAW)), torch.eye(27).double())
    assert as_chain(chain) is chain


def test_a_model_says_where_it_wants_its_tokens():
    class There(Weighed):
        device = torch.device("meta")

    with pytest.raises(InputError, match="move it to meta"):
        run_chain(Gibbs(), There(), start=STATES, steps=1)
