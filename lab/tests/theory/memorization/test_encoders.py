"""Tests of encoders of rank d: exact cases, optimality by gradients, and published bounds."""

import math

import pytest
import torch

from refusals import expect_error
from theory.memorization.targets import kl, random_log_probs
from trialogue_lab.theory import memorization

TARGETS = random_log_probs(60, 8)


def test_width_one_less_than_the_vocabulary_is_exact():
    encoder = memorization.nearest_encoder(TARGETS, 7)
    assert torch.allclose(encoder.log_probs, TARGETS, atol=1e-12, rtol=0)
    assert encoder.kl < 1e-14


@pytest.mark.parametrize("width", [1, 3, 5])
def test_gradient_vanishes_at_the_nearest_encoder_but_not_at_the_truncated_one(width):

    def gradient_norm(encoder):
        unembedding = encoder.unembedding.clone().requires_grad_()
        states = encoder.states.clone().requires_grad_()
        predictions = (states @ unembedding.T).log_softmax(1)
        (TARGETS.exp() * (TARGETS - predictions)).sum(1).mean().backward()
        assert unembedding.grad is not None
        assert states.grad is not None
        return float(torch.cat((unembedding.grad, states.grad)).norm())

    nearest, truncated = (
        memorization.nearest_encoder(TARGETS, width),
        memorization.truncated_encoder(TARGETS, width),
    )
    assert nearest.kl == pytest.approx(kl(TARGETS, nearest.log_probs))
    assert nearest.kl < 0.9 * truncated.kl
    assert gradient_norm(nearest) < 1e-4 < 1e-3 < gradient_norm(truncated)
    assert torch.linalg.matrix_rank(nearest.states @ nearest.unembedding.T) == width


@pytest.mark.parametrize(("vocab", "width"), [(10, 2), (50, 2), (9, 4), (6, 9)])
def test_associated_tokens_are_the_likeliest(vocab, width):
    tokens = torch.arange(vocab).repeat(2)
    encoder = memorization.association_encoder(tokens, vocab, width)
    assert (encoder.log_probs.argmax(1) == tokens).all()
    assert encoder.kl < 1e-12
    vectors = memorization.harmonic_vectors(vocab, width)
    assert torch.allclose(vectors.norm(dim=1), vectors[0].norm().expand(vocab))


def test_look_up_encoder_is_within_its_bound_on_the_divergence():
    found = memorization.look_up_encoder(TARGETS, 8)
    predictions = found.encoder.log_probs
    entropy, target = (-(p.exp() * p).sum(1) for p in (predictions, TARGETS))
    logits = found.encoder.states @ found.encoder.unembedding.T
    likeliest = TARGETS.argmax(1, keepdim=True)
    assert torch.allclose(-predictions.gather(1, likeliest)[:, 0], target, atol=1e-9, rtol=0)
    assert not torch.allclose(entropy, target, atol=1e-3)
    assert found.coherence == 0
    assert found.encoder.kl == pytest.approx(
        float((logits.max(1).values * (1 - TARGETS.exp().max(1).values)).mean())
    )
    assert found.encoder.kl - 1e-12 <= found.bound <= found.simple_bound < math.inf
    assert memorization.look_up_encoder(TARGETS, 4).bound == math.inf
    wide = memorization.look_up_encoder(TARGETS, 600)
    assert 0.05 < wide.coherence < 0.5
    assert wide.encoder.kl < wide.bound < wide.simple_bound


def test_softening_zeros_increases_the_range_of_logits_logarithmically():
    log_probs = torch.tensor([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64).log()
    expect_error(r"targets=-inf: row 0 .*softened", memorization.nearest_encoder, log_probs, 2)
    logit_ranges = []
    for floor in (1e-2, 1e-4, 1e-8):
        softened_log_probs = memorization.smooth_log_probs(log_probs, floor)
        assert torch.allclose(softened_log_probs.exp().sum(1), torch.ones(2, dtype=torch.float64))
        divergence = torch.where(
            torch.isfinite(log_probs), log_probs.exp() * (log_probs - softened_log_probs), 0.0
        ).sum(1)
        assert float(divergence.max()) < 4.01 * floor
        logit_ranges.append(
            float((softened_log_probs.max(1).values - softened_log_probs.min(1).values).max())
        )
    # The range grows by a constant for each power of ten.
    assert logit_ranges[2] - logit_ranges[1] == pytest.approx(
        2 * (logit_ranges[1] - logit_ranges[0]), rel=0.01
    )
