"""Networks with fewer features than contexts: exact on the likeliest, within the bounds."""

import math
from functools import partial

import pytest
import torch

from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator
from trialogue_lab.theory.memorization import (
    memorize_approximately,
    nearest_encoder,
    truncated_encoder,
)

likeliest = partial(memorize_approximately, method="likeliest")
ridge = partial(memorize_approximately, method="ridge")
CONTEXTS = whole_sequences(10, 2)
LAWS = torch.randn(100, 10, generator=generator(0, "laws"), dtype=torch.float64).log_softmax(1)
_RANKS = torch.arange(1, 101, dtype=torch.float64)[torch.randperm(100, generator=generator(0, "order"))]
PRIOR = _RANKS.pow(-1.5) / _RANKS.pow(-1.5).sum()


@pytest.mark.parametrize("width", [9, 4])
def test_the_likeliest_are_exact_and_the_bounds_hold(width):
    built = likeliest(LAWS, CONTEXTS, width, 8, width, prior=PRIOR)
    kept = 8 * width + width
    assert int(built.kept.sum()) == kept
    assert set(built.kept.nonzero()[:, 0].tolist()) == set(PRIOR.argsort(descending=True)[:kept].tolist())
    assert built.left == pytest.approx(float(PRIOR.sort().values[: 100 - kept].sum()))
    answers = built.model.answers(CONTEXTS)
    if width == 9:
        assert float((answers - LAWS)[built.kept].abs().max()) < 1e-5
    assert built.kl == pytest.approx(float(PRIOR @ (LAWS.exp() * (LAWS - answers)).sum(1)))
    assert abs(built.kl - built.encoder_kl) <= built.tight_bound <= built.loose_bound < math.inf


def test_ridge_regression_on_all_contexts_does_better():
    kept = likeliest(LAWS, CONTEXTS, 9, 6, 9, prior=PRIOR)
    nearer = ridge(LAWS, CONTEXTS, 9, 6, 9, prior=PRIOR)
    assert nearer.kl < 0.2 * kept.kl
    assert nearer.kl <= nearer.tight_bound
    assert not nearer.kept.any()


@pytest.mark.parametrize("build", [likeliest, ridge])
def test_an_encoder_that_was_found_is_built_in(build):
    found = nearest_encoder(LAWS, 4, PRIOR)
    given, alone = (build(LAWS, CONTEXTS, 4, 9, 4, prior=PRIOR, encoder=each) for each in (found, None))
    assert given.encoder_kl == pytest.approx(alone.encoder_kl, rel=1e-6)
    assert given.kl == pytest.approx(alone.kl, rel=1e-3)
    truncated = truncated_encoder(LAWS, 4, PRIOR)
    assert build(LAWS, CONTEXTS, 4, 9, 4, prior=PRIOR, encoder=truncated).encoder_kl > found.kl
    with pytest.raises(
        InputError, match=r"encoder=\(100, 4\): give one of 100 contexts and 10 tokens, of width 3"
    ):
        build(LAWS, CONTEXTS, 3, 12, 3, prior=PRIOR, encoder=found)


def test_a_prior_on_few_contexts_gives_a_right_network_or_is_refused():
    one = torch.zeros(100, dtype=torch.float64)
    one[37] = 1.0
    built = ridge(LAWS, CONTEXTS, 9, 2, 9, prior=one)
    assert built.kl < 1e-6
    few = torch.where(CONTEXTS[:, 1] < 3, PRIOR, 0.0)
    few /= few.sum()
    kept = likeliest(LAWS, CONTEXTS, 9, 2, 9, prior=few)
    answers = kept.model.answers(CONTEXTS)
    assert float((answers - LAWS)[kept.kept].abs().max()) < 1e-4
    assert kept.kl <= kept.tight_bound + 1e-9
    assert kept.tight_bound <= kept.loose_bound + 1e-9
