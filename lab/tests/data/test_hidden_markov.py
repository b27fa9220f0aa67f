import itertools
import math

import pytest
import torch

from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator
from trialogue.testing.models import check_energy, check_masked
from trialogue_lab.studies.translation_dependency.hidden_markov import Denoiser, HiddenMarkov


def _random(states=4, vocab=3, seed=0):
    draws = generator(seed, "hidden markov")

    def laws(*shape):
        weights = torch.rand(*shape, generator=draws, dtype=torch.float64)
        return weights / weights.sum(-1, keepdim=True)

    moves = laws(states, states + 1)
    return HiddenMarkov(laws(states), moves[:, :-1], laws(states, vocab), moves[:, -1])


def _by_paths(law, tokens):
    """p(N, x), summed over all paths of hidden states."""
    total = 0.0
    for path in itertools.product(range(len(law.initial)), repeat=len(tokens)):
        weight = float(law.initial[path[0]])
        for place, (state, token) in enumerate(zip(path, tokens, strict=True)):
            weight *= float(law.emissions[state, token])
            last = place + 1 == len(tokens)
            weight *= float(law.ending[state] if last else law.transitions[state, path[place + 1]])
        total += weight
    return total


def test_the_energy_sums_over_all_paths():
    law = _random()
    for tokens in whole_sequences(3, 3)[::4]:
        assert math.exp(-float(law.energy(tokens[None])[0])) == pytest.approx(_by_paths(law, tokens.tolist()))


def test_lengths_have_the_mass_of_their_sequences():
    law = _random()
    lengths = law.length_log_probs(4).exp()
    assert lengths[0] == 0
    for length in range(1, 5):
        assert float((-law.energy(whole_sequences(3, length))).exp().sum()) == pytest.approx(
            float(lengths[length])
        )


def _conditional(law, sites):
    weights = (-law.energy(whole_sequences(law.vocab_size, sites))).exp()
    return weights / weights.sum()


def test_it_keeps_the_contracts_of_masked_oracles_and_energies():
    law = _random()
    check_masked(law, sites=4, distribution=_conditional(law, 4))
    check_energy(law, sites=4)
    wrong = _random(seed=1)
    with pytest.raises(AssertionError, match="conditionals of the distribution"):
        check_masked(law, sites=4, distribution=_conditional(wrong, 4))


@pytest.mark.parametrize("among", [3, 12])
def test_the_denoiser_is_bayes_rule_on_the_noise(among):
    law, share = _random(), 0.3
    target, states = _conditional(law, 3), whole_sequences(3, 3)
    nothing = torch.zeros_like(states, dtype=torch.bool)
    denoiser = Denoiser(law, share, among)
    answer = denoiser.refined_log_probs(states, nothing).exp()
    for number, noisy in enumerate(states):
        kept = (states == noisy).double()
        chance = (share * kept + (1 - share) / among).prod(1) * target
        for site in range(3):
            bayes = torch.stack([chance[states[:, site] == value].sum() for value in range(3)])
            assert (answer[number, site] - bayes / bayes.sum()).abs().max() < 1e-12
    everything = ~nothing
    assert torch.equal(denoiser.refined_log_probs(states, everything), law.log_probs(states, everything))
    check_masked(denoiser, sites=3, distribution=target)


def test_what_cannot_be_is_refused():
    law = HiddenMarkov([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]], torch.eye(2), [0.0, 1.0])
    assert law.energy(torch.tensor([[0, 1], [1, 1]])).tolist() == [0.0, math.inf]
    assert law.energy(torch.tensor([[0]])).tolist() == [math.inf]
    with pytest.raises(InputError, match="row 1 has probability zero"):
        law.site_log_probs(torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(InputError, match="together sum to one"):
        HiddenMarkov([1.0], [[0.5]], [[1.0]], [0.4])
    with pytest.raises(InputError, match=r"use the shape \(1, 1\)"):
        HiddenMarkov([1.0], [[0.5, 0.5]], [[1.0]], [0.0])
