"""Encoders of rank d: exact where they must be, nearest by an independent criterion, and the printed bounds."""

import math

import pytest
import torch

from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue_lab.theory.memorization import (
    association_encoder,
    harmonic_vectors,
    look_up_encoder,
    nearest_encoder,
    softened,
    truncated_encoder,
)


def laws(contexts=60, vocab=8):
    logits = torch.randn(contexts, vocab, generator=generator(0, "laws"), dtype=torch.float64)
    return (2 * logits).log_softmax(1)


def kl(first, second):
    return float((first.exp() * (first - second)).sum(1).mean())


def test_a_width_of_one_less_than_the_vocabulary_is_exact():
    encoder = nearest_encoder(laws(), 7)
    assert torch.allclose(encoder.log_probs, laws(), atol=1e-12, rtol=0)
    assert encoder.kl < 1e-14


@pytest.mark.parametrize("width", [1, 3, 5])
def test_the_nearest_encoder_has_no_slope_and_the_truncated_one_has(width):
    targets = laws()

    def slope(encoder):
        unembedding = encoder.unembedding.clone().requires_grad_()
        states = encoder.states.clone().requires_grad_()
        answers = (states @ unembedding.T).log_softmax(1)
        (targets.exp() * (targets - answers)).sum(1).mean().backward()
        assert unembedding.grad is not None
        assert states.grad is not None
        return float(torch.cat((unembedding.grad, states.grad)).norm())

    nearest, truncated = nearest_encoder(targets, width), truncated_encoder(targets, width)
    assert nearest.kl == pytest.approx(kl(targets, nearest.log_probs))
    assert nearest.kl < 0.9 * truncated.kl
    assert slope(nearest) < 1e-4 < 1e-3 < slope(truncated)
    assert torch.linalg.matrix_rank(nearest.states @ nearest.unembedding.T) == width


@pytest.mark.parametrize(("vocab", "width"), [(10, 2), (50, 2), (9, 4), (6, 9)])
def test_associations_are_the_likeliest_tokens(vocab, width):
    tokens = torch.arange(vocab).repeat(2)
    encoder = association_encoder(tokens, vocab, width)
    assert (encoder.log_probs.argmax(1) == tokens).all()
    assert encoder.kl < 1e-12
    vectors = harmonic_vectors(vocab, width)
    assert torch.allclose(vectors.norm(dim=1), vectors[0].norm().expand(vocab))


def test_looking_up_keeps_the_entropies_and_is_within_its_bound():
    found = look_up_encoder(laws(), 8)
    answers = found.encoder.log_probs
    entropy, target = -(answers.exp() * answers).sum(1), -(laws().exp() * laws()).sum(1)
    logits = found.encoder.states @ found.encoder.unembedding.T
    likeliest = laws().argmax(1, keepdim=True)
    assert torch.allclose(-answers.gather(1, likeliest)[:, 0], target, atol=1e-9, rtol=0)
    assert not torch.allclose(entropy, target, atol=1e-3)
    assert found.coherence == 0
    assert found.encoder.kl == pytest.approx(
        float((logits.max(1).values * (1 - laws().exp().max(1).values)).mean())
    )
    assert found.encoder.kl - 1e-12 <= found.bound <= found.simple_bound < math.inf
    assert look_up_encoder(laws(), 4).bound == math.inf
    wide = look_up_encoder(laws(), 600)
    assert 0.05 < wide.coherence < 0.5
    assert wide.encoder.kl < wide.bound < wide.simple_bound


def test_laws_with_zeros_are_softened_at_a_logarithmic_price():
    law = torch.tensor([[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64).log()
    with pytest.raises(InputError, match=r"targets=-inf: row 0 .*softened"):
        nearest_encoder(law, 2)
    ranges = []
    for floor in (1e-2, 1e-4, 1e-8):
        soft = softened(law, floor)
        assert torch.allclose(soft.exp().sum(1), torch.ones(2, dtype=torch.float64))
        wrong = torch.where(torch.isfinite(law), law.exp() * (law - soft), 0.0).sum(1)
        assert float(wrong.max()) < 4.01 * floor
        ranges.append(float((soft.max(1).values - soft.min(1).values).max()))
    # What is gained is a constant for each power of ten.
    assert ranges[2] - ranges[1] == pytest.approx(2 * (ranges[1] - ranges[0]), rel=0.01)
