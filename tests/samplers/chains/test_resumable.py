"""Chains that are interrupted and resumed follow the same path."""

import pytest
import torch

from refusals import expect_error
from samplers.chains.small_models import random_ising
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.oracles import whole_sequences
from trialogue.samplers import Gibbs, MaskedMetropolis, run_chain
from trialogue.samplers.chains.resumable import RunningChains

NETWORK = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=2), seed=1)
START = whole_sequences(3, 4)[::7]
CHAINS = {
    "gibbs on a network": (Gibbs(), NETWORK, START),
    "metropolis on a network": (MaskedMetropolis(), NETWORK, START),
    "a compiled sweep": (Gibbs("sweep"), random_ising(1, 4), whole_sequences(2, 4)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_resumed_chain_follows_the_path_of_run_chain(name):
    chain, model, start = CHAINS[name]
    expected = run_chain(chain, model, start=start, steps=20, seed=3)
    running = RunningChains(chain, model, start, seed=3)
    running.advance(7)
    saved = {key: value.clone() for key, value in running.saved().items()}
    running.advance(13)
    assert torch.equal(running.tokens, expected.tokens)
    again = RunningChains(chain, model, start, seed=3)
    again.resume(saved)
    assert again.steps == 7
    again.advance(13)
    assert torch.equal(again.tokens, expected.tokens)
    if running.energies is not None:
        assert torch.equal(again.energies, running.energies)


@pytest.mark.parametrize("lost", ["counters", "state/energy"])
def test_a_state_with_lost_entries_follows_another_path(lost):
    chain, model, start = CHAINS["metropolis on a network"]
    running = RunningChains(chain, model, start)
    running.advance(7)
    saved = {key: value.clone() for key, value in running.saved().items()}
    running.advance(40)
    again = RunningChains(chain, model, start)
    again.resume({**saved, lost: torch.zeros_like(saved[lost])})
    again.advance(40)
    assert not torch.equal(again.tokens, running.tokens)


def test_the_state_of_other_chains_is_rejected():
    chain, model, start = CHAINS["metropolis on a network"]
    saved = RunningChains(chain, model, start).saved()
    for chains in (RunningChains(chain, model, start[:3]), RunningChains(Gibbs(), model, start)):
        other = chains.saved()
        expect_error("other chains", RunningChains(chain, model, start).resume, other)
    expect_error("other chains", RunningChains(chain, model, start[:3]).resume, saved)
