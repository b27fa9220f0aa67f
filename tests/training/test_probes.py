"""Test that probes separate separable classes, and reuse the hidden states of the oracle."""

import pytest
import torch

from refusals import expect_error
from trialogue.models.networks.probe import Probe, hidden_states
from trialogue.models.networks.transformer import Transformer, TransformerConfig
from trialogue.randomness import generator
from trialogue.samplers import Ancestral, Backtracking, generate
from trialogue.training.probes.grid import ProbeConfig, train_probe
from trialogue.verifiers.functions.function import Threshold
from trialogue.verifiers.probe import ProbeVerifier

MODEL = Transformer(
    TransformerConfig(vocab_size=3, width=16, heads=2, mlp_width=32, max_length=9), seed=3
).eval()


def examples(depth: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return states that are separated by a hyperplane (depth 1) or by the sign of a product (depth 2)."""
    states = torch.randn(600, 8, generator=generator(0, "states"))
    margin = states[:, 0] if depth == 1 else states[:, 0] * states[:, 1]
    far = margin.abs() > 0.1
    return states[far], (margin[far] > 0).long()


@pytest.mark.parametrize("depth", [1, 2])
def test_probe_separates_classes_for_its_depth(depth):
    trained = train_probe(*examples(depth), ProbeConfig(depth=depth, validation=0.2))
    assert trained.validation_accuracy > 0.95
    assert trained.train_size + trained.validation_size == len(examples(depth)[0])


def test_linear_probe_fails_on_products_and_all_probes_fail_on_noise():
    states, labels = examples(2)
    assert train_probe(states, labels, ProbeConfig(validation=0.5)).validation_accuracy < 0.65
    noise = torch.randint(0, 2, labels.shape, generator=generator(0, "noise"))
    assert abs(train_probe(states, noise, ProbeConfig(validation=0.5)).validation_accuracy - 0.5) < 0.15


def test_missing_label_is_rejected():
    states, labels = examples(1)
    expect_error("labels=0: give more erroneous examples", train_probe, states, torch.ones_like(labels))


@pytest.mark.parametrize("layer", [-1, 0, 1, 2])
def test_hidden_states_match_a_full_pass(layer):
    tokens = torch.randint(0, 3, (5, 9), generator=generator(0, "tokens"))
    lengths = torch.tensor([9, 1, 0, 4, 7])
    states = hidden_states(MODEL, tokens, lengths, (layer,))[:, 0]
    inputs = torch.cat((torch.full((5, 1), MODEL.bos), tokens), 1)
    whole = MODEL.hidden_states(inputs)[layer].detach()
    assert torch.allclose(states, whole[torch.arange(5), lengths], atol=1e-5)
    shifted = whole[torch.arange(5), (lengths - 1).clamp_min(0)]
    assert not torch.allclose(states, shifted, atol=1e-2)


@pytest.mark.parametrize("layer", [-1, 1])
def test_probe_verifier_reuses_the_states_of_prefixes(layer):
    probe = Probe(16, seed=1).requires_grad_(False)
    verifier = Threshold(ProbeVerifier(probe, layer), 0.5)
    prompts = torch.randint(0, 3, (40, 3), generator=generator(0, "prompts"))
    samples = generate(MODEL, prompts, sampler=Backtracking(2, 2), verifier=verifier, seed=5)
    states = hidden_states(MODEL, samples.tokens, samples.lengths, (layer,))[:, 0]
    sure = (probe.probability(states) - 0.5).abs() > 1e-4
    assert torch.equal(samples.accepted[sure], (probe.probability(states) >= 0.5)[sure])
    free = generate(MODEL, prompts, sampler=Ancestral(), seed=5)
    judged = generate(MODEL, prompts, sampler=Ancestral(), verifier=verifier, seed=5)
    assert torch.equal(free.tokens, judged.tokens)
    # Only complete sequences, which need no next token, are evaluated for the verifier alone.
    assert judged.total.positions - free.total.positions <= len(prompts)
