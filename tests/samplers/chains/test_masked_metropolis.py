"""Metropolis-Hastings on masked scores: target distribution, interactions of k bodies, gauges and costs."""

import pytest
import torch

from mutants.modules import altered
from trialogue.data import ManyBody
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.oracles import whole_sequences
from trialogue.samplers import Gibbs, MaskedMetropolis, run_chain
from trialogue.samplers.chains import masked_metropolis
from trialogue.samplers.exact import chain_transitions

NETWORK = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=2), seed=1)
STATES = whole_sequences(3, 4)


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


@pytest.mark.parametrize(
    "change",
    [
        (" + distribution[moved, present[moved]] - distribution[moved, proposed[moved]]", ""),
        ("energy[moved] - scored + distribution", "distribution"),
        ("logits.double().sum(1)", "logits[:, 0].double()"),
        ("tokens[moved[taken]], energy[moved[taken]] = sequences[taken], scored[taken]",
         "tokens[moved[taken]] = sequences[taken]"),
    ],
    ids=["without the ratio of proposals", "without energies", "the score of one site", "a stale energy"],
)  # fmt: skip
def test_faulty_chains_are_detected(change):
    mutant = altered(masked_metropolis, change, compiled=False)["MaskedMetropolis"]()
    if change[1].startswith("tokens[moved"):
        paths = [
            run_chain(kind, NETWORK, start=STATES[:40], steps=30).tokens
            for kind in (mutant, MaskedMetropolis())
        ]
        assert not torch.equal(*paths)
    else:
        assert invariance_error(mutant) > 1e-4


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
