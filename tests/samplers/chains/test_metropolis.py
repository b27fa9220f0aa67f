"""Metropolis and its form on masked scores: transitions, interactions of k bodies, costs, and a ring."""

import re
from pathlib import Path

import pytest
import torch

from refusals import expect_error
from samplers.chains.small_models import Energies, random_ising, random_joint, ring
from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.oracles import enumerate_sequences
from trialogue.samplers import Gibbs, MaskedMetropolis, Metropolis, run_chain
from trialogue.samplers.exact import chain_ergodicity, chain_transitions, ergodicity, transition_matrix


@pytest.mark.parametrize(
    "model", [random_ising(1, 3), Energies(random_joint(2, 3, 3))], ids=["spins", "three values"]
)
def test_transitions_follow_the_definition(model):
    distribution, states = model.probabilities(), enumerate_sequences(model.vocab_size, 3)
    expected = torch.zeros(len(states), len(states), dtype=torch.float64)
    for x in range(len(states)):
        for y in range(len(states)):
            if int((states[x] != states[y]).sum()) == 1:
                expected[x, y] = (
                    min(1.0, float(distribution[y] / distribution[x])) / 3 / (model.vocab_size - 1)
                )
        expected[x, x] = 1 - expected[x].sum()
    torch.testing.assert_close(transition_matrix(Metropolis(), model), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("sites", [4, 5, 6])
def test_a_fixed_order_is_not_ergodic_on_a_ring_without_field(sites):
    """The distribution is invariant, but the states fall into several closed classes."""
    model = ring(sites, 0.5)
    matrix = transition_matrix(Metropolis("sweep"), model)
    distribution = model.probabilities()
    torch.testing.assert_close(distribution @ matrix, distribution, rtol=0, atol=1e-15)
    assert ergodicity(matrix).closed_classes > 1
    with pytest.raises(InputError, match=r"not ergodic on this model, because its 2.* closed classes"):
        run_chain(Metropolis("sweep"), model, start=torch.zeros(1, sites).long(), steps=1)
    for chain in (Gibbs(), Gibbs("sweep"), Metropolis()):
        assert chain_ergodicity(chain, model).ergodic
    assert chain_ergodicity(Metropolis("sweep"), ring(sites, 0.5, field=0.1)).ergodic


PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "ring.md"


def test_the_code_of_the_page_gives_the_stated_results():
    demonstration, refusal = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(demonstration, names)
    # The tolerances exceed six standard errors of 20 and of 256 chains.
    assert names["right_by_steps"] == pytest.approx(0.4621, abs=0.06)
    assert names["right_in_bulk"] == pytest.approx(0.4621, abs=0.015)
    assert abs(names["wrong"]) < 0.06
    expect_error(
        r"chain=Metropolis\(order='sweep'\): the chain is not ergodic .* closed classes", exec, refusal, names
    )


NETWORK = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=2), seed=1)
STATES = enumerate_sequences(3, 4)


def invariance_error(chain) -> float:
    """Return the change of exp(-E) in one step. E is the sum of the network's scores of single masked sites."""
    score = torch.zeros(len(STATES), dtype=torch.float64)
    for site in range(4):
        sites = torch.full((len(STATES),), site)
        hidden = STATES.scatter(1, sites[:, None], NETWORK.mask)
        logits = NETWORK.logits(hidden, sites, torch.float64).detach()
        if chain.gauge == "normalised":
            logits = logits.log_softmax(-1)
        score += logits[torch.arange(len(STATES)), STATES[:, site]]
    target = (score / chain.bodies).softmax(0)
    return float((target @ chain_transitions(chain, NETWORK) - target).abs().max())


@pytest.mark.parametrize("gauge", ["raw", "normalised"])
@pytest.mark.parametrize("bodies", [1.0, 2.5])
def test_the_score_is_invariant(gauge, bodies):
    assert invariance_error(MaskedMetropolis(gauge, bodies)) < 1e-12


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_score_of_k_body_interactions_is_k_energies(order):
    distribution = ManyBody.random(4, 3, order=order, rank=8, seed=2)
    states = distribution.states()
    torch.testing.assert_close(
        MaskedMetropolis().energy(distribution, states),
        order * distribution.energy(states),
        rtol=1e-11,
        atol=1e-11,
    )
    published = distribution.probabilities() @ chain_transitions(MaskedMetropolis(), distribution)
    corrected = distribution.probabilities() @ chain_transitions(MaskedMetropolis(bodies=order), distribution)
    torch.testing.assert_close(corrected, distribution.probabilities(), rtol=0, atol=1e-13)
    assert float((published - distribution.probabilities()).abs().sum()) > 1e-3


def test_a_proposal_needs_one_evaluation_and_a_repeated_token_none():
    evaluated = []

    class Counting(FactoredAttention):
        def token_logits(self, tokens):
            evaluated.append(tokens.clone())
            return super().token_logits(tokens)

    model, chain = Counting(NETWORK.config, seed=1), MaskedMetropolis()
    state = chain.init(model, STATES[:30])
    evaluated.clear()

    def choose(log_weights, rows):
        """Choose the first site and the token 0."""
        return torch.zeros(len(rows), dtype=torch.int64)

    chain.step(model, state, choose)
    assert sum(len(tokens) for tokens in evaluated) == int((STATES[:30, 0] != 0).sum())


def test_energies_of_samples_are_recorded():
    chain = MaskedMetropolis()
    run = run_chain(chain, NETWORK, start=STATES[:7], steps=9, thin=3, burn_in=2)
    assert run.energies.shape == (3, 7)
    torch.testing.assert_close(
        run.energies,
        torch.stack([chain.energy(NETWORK, tokens) for tokens in run.samples]),
        rtol=0,
        atol=1e-12,
    )
    assert run_chain(Gibbs(), NETWORK, start=STATES[:7], steps=2, thin=1).energies is None
