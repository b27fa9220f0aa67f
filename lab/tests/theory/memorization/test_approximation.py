"""Tests of networks with fewer features than contexts: exactness on the likeliest contexts, and bounds."""

import math
from functools import partial

import pytest
import torch

from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import generator
from trialogue_lab.theory import memorization

likeliest = partial(memorization.memorize_approximately, method="likeliest")
ridge = partial(memorization.memorize_approximately, method="ridge")
CONTEXTS = enumerate_sequences(10, 2)
TARGETS = torch.randn(100, 10, generator=generator(0, "laws"), dtype=torch.float64).log_softmax(1)
_RANKS = torch.arange(1, 101, dtype=torch.float64)[torch.randperm(100, generator=generator(0, "order"))]
PRIOR = _RANKS.pow(-1.5) / _RANKS.pow(-1.5).sum()


@pytest.mark.parametrize("width", [9, 4])
def test_likeliest_contexts_are_exact_and_the_bounds_hold(width):
    built = likeliest(TARGETS, CONTEXTS, width, 8, width, prior=PRIOR)
    exact = 8 * width + width
    assert int(built.kept.sum()) == exact
    assert set(built.kept.nonzero()[:, 0].tolist()) == set(PRIOR.argsort(descending=True)[:exact].tolist())
    assert built.left == pytest.approx(float(PRIOR.sort().values[: 100 - exact].sum()))
    predictions = built.model.context_log_probs(CONTEXTS)
    if width == 9:
        assert float((predictions - TARGETS)[built.kept].abs().max()) < 1e-5
    assert built.kl == pytest.approx(float(PRIOR @ (TARGETS.exp() * (TARGETS - predictions)).sum(1)))
    assert abs(built.kl - built.encoder_kl) <= built.tight_bound <= built.loose_bound < math.inf


def test_ridge_regression_has_a_lower_divergence_than_likeliest_contexts():
    exact = likeliest(TARGETS, CONTEXTS, 9, 6, 9, prior=PRIOR)
    nearer = ridge(TARGETS, CONTEXTS, 9, 6, 9, prior=PRIOR)
    assert nearer.kl < 0.2 * exact.kl
    assert nearer.kl <= nearer.tight_bound
    assert not nearer.kept.any()


@pytest.mark.parametrize("build", [likeliest, ridge])
def test_given_encoder_is_used_and_checked(build):
    found = memorization.nearest_encoder(TARGETS, 4, PRIOR)
    given, alone = (build(TARGETS, CONTEXTS, 4, 9, 4, prior=PRIOR, encoder=each) for each in (found, None))
    assert given.encoder_kl == pytest.approx(alone.encoder_kl, rel=1e-6)
    assert given.kl == pytest.approx(alone.kl, rel=1e-3)
    truncated = memorization.truncated_encoder(TARGETS, 4, PRIOR)
    assert build(TARGETS, CONTEXTS, 4, 9, 4, prior=PRIOR, encoder=truncated).encoder_kl > found.kl
    with pytest.raises(
        InputError,
        match=r"encoder=\(100, 4\): give an encoder for 100 contexts and 10 tokens with a width of at most 3",
    ):
        build(TARGETS, CONTEXTS, 3, 12, 3, prior=PRIOR, encoder=found)


def test_prior_on_few_contexts_gives_an_accurate_network():
    one_prior = torch.zeros(100, dtype=torch.float64)
    one_prior[37] = 1.0
    built = ridge(TARGETS, CONTEXTS, 9, 2, 9, prior=one_prior)
    assert built.kl < 1e-6
    few_prior = torch.where(CONTEXTS[:, 1] < 3, PRIOR, 0.0)
    few_prior /= few_prior.sum()
    exact = likeliest(TARGETS, CONTEXTS, 9, 2, 9, prior=few_prior)
    predictions = exact.model.context_log_probs(CONTEXTS)
    assert float((predictions - TARGETS)[exact.kept].abs().max()) < 1e-4
    assert exact.kl <= exact.tight_bound + 1e-9
    assert exact.tight_bound <= exact.loose_bound + 1e-9
