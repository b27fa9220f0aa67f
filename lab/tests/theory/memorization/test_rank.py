"""Tests of feature ranks against the published and the corrected formula, and of the numbers of Lemma 3."""

import itertools

import pytest

from refusals import expect_error
from trialogue.models.networks.attention_only import AttentionOnlyConfig
from trialogue.oracles import enumerate_sequences
from trialogue_lab.theory.memorization import (
    accuracy_bound,
    capacity,
    expected_rank,
    expected_rank_for,
    feature_rank,
    independent_integers,
    previous_capacity,
    printed_rank,
)

# N, S, d, d_h, H
GENERIC = [
    (5, 2, 4, 2, 7),
    (5, 2, 5, 1, 30),
    (3, 4, 3, 3, 20),
    (3, 3, 3, 2, 9),
    (12, 2, 10, 10, 14),
    (4, 3, 3, 2, 40),
]
FAILING = [
    (5, 2, 8, 2, 6),
    (2, 3, 8, 8, 1),
    (2, 3, 4, 1, 4),
    (3, 3, 5, 5, 3),
    (5, 1, 4, 4, 6),
    (2, 5, 6, 3, 8),
]


@pytest.mark.parametrize("shape", [*GENERIC, *FAILING])
def test_measured_rank_agrees_with_the_published_rank_for_generic_shapes_only(shape):
    size, length, width, head_width, heads = shape
    measured = feature_rank(size, length, width, head_width, heads)
    printed = printed_rank(size**length, width, head_width, heads)
    assert measured == expected_rank(*shape)
    assert measured == printed if shape in GENERIC else measured < printed


def test_rank_of_contexts_with_two_last_tokens_agrees_with_the_formula():
    contexts = enumerate_sequences(6, 3)
    few_contexts = contexts[contexts[:, -1] < 2]
    config = AttentionOnlyConfig(vocab_size=6, context=3, width=5, head_width=2, heads=10)
    assert (
        feature_rank(6, 3, 5, 2, 10, contexts=few_contexts) == expected_rank_for(config, few_contexts) == 22
    )


@pytest.mark.parametrize("wide", [3, 8])
def test_rank_of_contexts_of_few_tokens_agrees_with_the_formula(wide):
    config = AttentionOnlyConfig(vocab_size=50, context=3, width=8, head_width=wide, heads=3)
    contexts_of_few_tokens = enumerate_sequences(3, 3)
    separated = contexts_of_few_tokens.clone()
    separated[:, 1] += 10
    for contexts in (contexts_of_few_tokens, separated, separated[separated[:, 0] < 2]):
        assert feature_rank(50, 3, 8, wide, 3, contexts=contexts) == expected_rank_for(config, contexts)
    assert (
        expected_rank_for(config, contexts_of_few_tokens) < expected_rank(50, 3, 8, wide, 3, 27) or wide == 3
    )


def test_expected_rank_of_very_long_contexts_is_fast():
    assert expected_rank(2, 10**30, 4, 3, 5) == expected_rank(2, 100, 4, 3, 5)


def test_too_many_contexts_are_rejected():
    expect_error(r"contexts=None: 50\^4 contexts are more than 20000", feature_rank, 50, 4, 10, 10, 3)


def test_no_small_polynomial_vanishes_at_independent_integers():
    degree, coefficient = 2, 1
    x, y = independent_integers(2, degree, coefficient)
    monomials = [x**a * y**b for a in range(degree + 1) for b in range(degree + 1)]
    values = {
        sum(c * m for c, m in zip(polynomial, monomials, strict=True))
        for polynomial in itertools.product((-1, 0, 1), repeat=9)
    }
    assert len(values) == 3**9  # all values differ, so only the zero polynomial is zero


def test_capacities_and_accuracy_bounds_have_known_values():
    assert (capacity(10, 10, 20), previous_capacity(10, 20)) == (210, 181)
    assert accuracy_bound(82, 100, 10) == pytest.approx(0.838)
    assert accuracy_bound(300, 100, 10) == 1
