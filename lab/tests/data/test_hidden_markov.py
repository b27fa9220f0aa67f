"""Tests of hidden Markov models and their denoiser against sums over hidden paths."""

import itertools
import math

import pytest
import torch

from refusals import expect_error
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue.testing.models import check_energy, check_masked
from trialogue_lab.studies.translation_dependency.hidden_markov import Denoiser, HiddenMarkov


def _random(states=4, vocab=3, seed=0):
    random = generator(seed, "hidden markov")

    def random_distributions(*shape):
        weights = torch.rand(*shape, generator=random, dtype=torch.float64)
        return weights / weights.sum(-1, keepdim=True)

    moves = random_distributions(states, states + 1)
    return HiddenMarkov(
        random_distributions(states), moves[:, :-1], random_distributions(states, vocab), moves[:, -1]
    )


def _sum_over_paths(model, tokens):
    """Return p(N, x), summed over all paths of hidden states."""
    total = 0.0
    for path in itertools.product(range(len(model.initial)), repeat=len(tokens)):
        weight = float(model.initial[path[0]])
        for place, (state, token) in enumerate(zip(path, tokens, strict=True)):
            weight *= float(model.emissions[state, token])
            last = place + 1 == len(tokens)
            weight *= float(model.ending[state] if last else model.transitions[state, path[place + 1]])
        total += weight
    return total


def test_energy_agrees_with_a_sum_over_paths():
    model = _random()
    for tokens in enumerate_sequences(3, 3)[::4]:
        assert math.exp(-float(model.energy(tokens[None])[0])) == pytest.approx(
            _sum_over_paths(model, tokens.tolist())
        )


def test_length_probabilities_agree_with_sums_over_sequences():
    model = _random()
    lengths = model.length_log_probs(4).exp()
    assert lengths[0] == 0
    for length in range(1, 5):
        assert float((-model.energy(enumerate_sequences(3, length))).exp().sum()) == pytest.approx(
            float(lengths[length])
        )


def _conditional(model, sites):
    weights = (-model.energy(enumerate_sequences(model.vocab_size, sites))).exp()
    return weights / weights.sum()


def test_model_is_a_masked_oracle_with_an_energy():
    model = _random()
    check_masked(model, sites=4, distribution=_conditional(model, 4))
    check_energy(model, sites=4)
    wrong = _random(seed=1)
    with pytest.raises(AssertionError, match="conditionals of the distribution"):
        check_masked(model, sites=4, distribution=_conditional(wrong, 4))


@pytest.mark.parametrize("noise_tokens", [3, 12])
def test_denoiser_agrees_with_bayes_rule(noise_tokens):
    model, share = _random(), 0.3
    target, states = _conditional(model, 3), enumerate_sequences(3, 3)
    none_masked = torch.zeros_like(states, dtype=torch.bool)
    denoiser = Denoiser(model, share, noise_tokens)
    found = denoiser.refined_log_probs(states, none_masked).exp()
    for number, noisy in enumerate(states):
        is_equal = (states == noisy).double()
        joint = (share * is_equal + (1 - share) / noise_tokens).prod(1) * target
        for site in range(3):
            bayes = torch.stack([joint[states[:, site] == value].sum() for value in range(3)])
            assert (found[number, site] - bayes / bayes.sum()).abs().max() < 1e-12
    all_masked = ~none_masked
    assert torch.equal(denoiser.refined_log_probs(states, all_masked), model.log_probs(states, all_masked))
    check_masked(denoiser, sites=3, distribution=target)


def test_impossible_sequences_and_invalid_parameters_are_rejected():
    model = HiddenMarkov([1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]], torch.eye(2), [0.0, 1.0])
    assert model.energy(torch.tensor([[0, 1], [1, 1]])).tolist() == [0.0, math.inf]
    assert model.energy(torch.tensor([[0]])).tolist() == [math.inf]
    expect_error("row 1 has probability zero", model.site_log_probs, torch.tensor([[0, 1], [1, 0]]))
    expect_error("together sum to one", HiddenMarkov, [1.0], [[0.5]], [[1.0]], [0.4])
    expect_error(r"use the shape \(1, 1\)", HiddenMarkov, [1.0], [[0.5, 0.5]], [[1.0]], [0.0])
