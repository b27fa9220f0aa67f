"""Refinement as a chain: exact transitions, schedules, and kept tokens."""

import pytest
import torch

from models.small_encoder_decoders import small_network
from refusals import expect_error
from samplers.chains.small_models import Conditionals, Energies, random_joint
from trialogue.models.encoder_decoder.refiner import Refiner
from trialogue.oracles import Masked, as_model, enumerate_sequences
from trialogue.samplers import CHAINS, ChainRule, Gibbs, IndependentParallel, MaskedMetropolis, run_chain
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.exact.chains import chain_transitions
from trialogue.testing.chains import check_chain

ORACLE = Conditionals(random_joint(1, 2, 3))
SAMPLED = Refinement(choice="sampled", keep="nothing")


class Denoiser(Masked):
    """A masked oracle that returns the next table of a list at each call."""

    vocab_size = 3
    sites = 4

    def __init__(self, distributions):
        self.distributions, self.masks = distributions, []

    def log_probs(self, tokens, masked):
        raise NotImplementedError

    def refined_log_probs(self, tokens, masked):
        self.masks.append(masked.clone())
        return self.distributions[len(self.masks) - 1].expand(len(tokens), -1, -1).log()


def refuse_choice(log_weights, rows):
    raise AssertionError("an argmax draws nothing")


def one_hot(*tokens, confidence=0.9):
    distribution = torch.full((len(tokens), 3), (1 - confidence) / 2)
    distribution[torch.arange(len(tokens)), torch.tensor(tokens)] = confidence
    return distribution


def test_refinement_keeps_the_contract_of_chains():
    assert CHAINS["refinement"] is Refinement
    check_chain(SAMPLED, ORACLE, invariant=False)
    check_chain(Refinement(choice="sampled"), ORACLE, invariant=False)


def test_sampled_refinement_of_exact_conditionals_is_the_parallel_chain():
    expected = chain_transitions(IndependentParallel(), as_model(ORACLE))
    assert chain_transitions(SAMPLED, as_model(ORACLE)) == pytest.approx(expected, abs=1e-12)
    masked = chain_transitions(Refinement("mask", "sampled", "nothing"), as_model(ORACLE))
    assert not torch.allclose(masked, expected, atol=1e-2)
    # From masks, every start has the same distribution, the product of the marginals.
    marginals = ORACLE.log_probs(torch.zeros(1, 3, dtype=torch.int64), torch.ones(1, 3, dtype=torch.bool))[0]
    distribution = torch.tensor(
        [sum(marginals[i, t] for i, t in enumerate(x)) for x in enumerate_sequences(2, 3)]
    ).exp()
    assert masked == pytest.approx(distribution.expand(8, -1), abs=1e-12)


def test_repeated_tokens_keep_their_previous_value():
    model = Denoiser([one_hot(1, 1, 2, 2), one_hot(1, 1, 2, 2)])
    state = Refinement().init(model, torch.tensor([[0, 2, 0, 1]]))
    found, _ = Refinement().step(model, state, refuse_choice)
    assert found.tokens.tolist() == [[1, 2, 2, 1]]
    assert found.scores.exp().tolist()[0] == pytest.approx([0.9, 0.05, 0.9, 0.05], abs=1e-6)
    plain, _ = Refinement(keep="nothing").step(model, state, refuse_choice)
    assert plain.tokens.tolist() == [[1, 1, 2, 2]]


def test_mask_predict_keeps_the_most_confident_tokens():
    confidence = torch.tensor([[0.4, 0.6, 0.8, 0.5]]).T
    first = torch.where(torch.arange(3) == 1, confidence, (1 - confidence) / 2)
    model = Denoiser([first, one_hot(2, 2, 2, 2), one_hot(0, 0, 0, 0)])
    chain = Refinement(start="mask", keep="confident", steps=2)
    state = chain.init(model, torch.zeros(1, 4, dtype=torch.int64))
    state, _ = chain.step(model, state, refuse_choice)
    assert state.tokens.tolist() == [[1, 1, 1, 1]]
    assert state.masked.tolist() == [[True, False, False, True]]
    state, _ = chain.step(model, state, refuse_choice)
    assert state.tokens.tolist() == [[2, 1, 1, 2]]
    assert not state.masked.any()
    assert chain.step(model, state, refuse_choice)[0] is state
    assert len(model.masks) == 2


@pytest.mark.parametrize(("sites", "steps"), [(7, 3), (5, 5), (4, 1), (3, 10)])
def test_the_schedule_ends_after_the_given_steps(sites, steps):
    chain, remaining = Refinement(start="mask", keep="confident", steps=steps), []
    oracle = as_model(Conditionals(random_joint(2, 2, sites)))
    state = chain.init(oracle, torch.zeros(2, sites, dtype=torch.int64))
    while state.masked.any():
        state, _ = chain.step(oracle, state, refuse_choice)
        remaining.append(int(state.masked[0].sum()))
    filled = -(-sites // steps)
    assert remaining == [max(0, sites - filled * step) for step in range(1, len(remaining) + 1)]
    assert len(remaining) <= steps


def test_all_chains_run_on_a_refiner():
    oracle = Refiner(small_network(causal=False)).condition([4, 5, 6])
    start = torch.tensor([[4, 5, 6], [7, 8, 4]])
    for chain, model in (
        (Gibbs(), oracle),
        (Gibbs(), ChainRule(oracle)),
        (IndependentParallel(), oracle),
        (MaskedMetropolis(), oracle),
        (Refinement(), oracle),
        (Refinement(choice="sampled", start="mask"), oracle),
    ):
        run = run_chain(chain, model, start=start, steps=3, require_ergodic=False)
        assert int(run.tokens.min()) >= 4


def test_confident_tokens_require_a_masked_start():
    expect_error(r"^start=", Refinement, keep="confident")


def test_an_energy_cannot_be_refined():
    model = as_model(Energies(random_joint(1, 2, 3)))
    state = Refinement().init(model, torch.zeros(1, 3, dtype=torch.int64))
    expect_error("masked oracle", Refinement().step, model, state, refuse_choice)


def test_a_masked_site_cannot_keep_its_token():
    chain, model = Refinement(start="mask"), Denoiser([one_hot(1, 1, 2, 2)])
    found, _ = chain.step(model, chain.init(model, torch.zeros(1, 4, dtype=torch.int64)), refuse_choice)
    assert found.tokens.tolist() == [[1, 1, 2, 2]]
    assert model.masks[0].all()
    assert not found.masked.any()
