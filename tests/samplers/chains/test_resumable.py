"""Chains that are put down and taken up again take the path that they would have taken."""

import pytest
import torch

from samplers.chains.small_models import random_ising
from trialogue.errors import InputError
from trialogue.models.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.oracles import whole_sequences
from trialogue.samplers import Gibbs, MaskedMetropolis, run_chain
from trialogue.samplers.chains.resumable import RunningChains

NET = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=2), seed=1)
START = whole_sequences(3, 4)[::7]
CHAINS = {
    "gibbs on a network": (Gibbs(), NET, START),
    "metropolis on a network": (MaskedMetropolis(), NET, START),
    "a compiled sweep": (Gibbs("sweep"), random_ising(1, 4), whole_sequences(2, 4)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_the_path_is_that_of_run_chain_however_often_it_is_cut(name):
    chain, model, start = CHAINS[name]
    whole = run_chain(chain, model, start=start, steps=20, seed=3)
    running = RunningChains(chain, model, start, seed=3)
    running.advance(7)
    saved = {key: value.clone() for key, value in running.saved().items()}
    running.advance(13)
    assert torch.equal(running.tokens, whole.tokens)
    again = RunningChains(chain, model, start, seed=3)
    again.resume(saved)
    assert again.steps == 7
    again.advance(13)
    assert torch.equal(again.tokens, whole.tokens)
    if running.energies is not None:
        assert torch.equal(again.energies, running.energies)


@pytest.mark.parametrize("lost", ["counters", "state/energy"])
def test_what_is_not_restored_shows(lost):
    chain, model, start = CHAINS["metropolis on a network"]
    running = RunningChains(chain, model, start)
    running.advance(7)
    saved = {key: value.clone() for key, value in running.saved().items()}
    running.advance(40)
    again = RunningChains(chain, model, start)
    again.resume({**saved, lost: torch.zeros_like(saved[lost])})
    again.advance(40)
    assert not torch.equal(again.tokens, running.tokens)


def test_the_state_of_other_chains_is_refused():
    chain, model, start = CHAINS["metropolis on a network"]
    saved = RunningChains(chain, model, start).saved()
    for chains in (RunningChains(chain, model, start[:3]), RunningChains(Gibbs(), model, start)):
        other = chains.saved()
        with pytest.raises(InputError, match="other chains"):
            RunningChains(chain, model, start).resume(other)
    with pytest.raises(InputError, match="other chains"):
        RunningChains(chain, model, start[:3]).resume(saved)
