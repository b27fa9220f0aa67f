"""Ranks of features against the printed and the mended law, where the lemma fails among them; Lemma 3's numbers."""

import itertools

import pytest
import torch

from trialogue.errors import InputError
from trialogue.models.networks.attention_only import AttentionOnlyConfig
from trialogue.oracles import whole_sequences
from trialogue.randomness import generator
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


@pytest.mark.parametrize("shape", GENERIC)
def test_the_printed_rank_where_it_holds(shape):
    size, length, width, head_width, heads = shape
    measured = feature_rank(size, length, width, head_width, heads)
    assert measured == printed_rank(size**length, width, head_width, heads) == expected_rank(*shape)


@pytest.mark.parametrize("shape", FAILING)
def test_the_rank_where_the_lemma_fails(shape):
    size, length, width, head_width, heads = shape
    measured = feature_rank(size, length, width, head_width, heads)
    assert measured == expected_rank(*shape)
    assert measured < printed_rank(size**length, width, head_width, heads)


def test_the_rank_of_some_contexts():
    contexts = whole_sequences(6, 3)
    some = contexts[contexts[:, -1] < 2]
    config = AttentionOnlyConfig(vocab_size=6, context=3, width=5, head_width=2, heads=10)
    assert feature_rank(6, 3, 5, 2, 10, contexts=some) == expected_rank_for(config, some) == 22


@pytest.mark.parametrize("wide", [3, 8])
def test_the_rank_of_contexts_of_few_tokens(wide):
    config = AttentionOnlyConfig(vocab_size=50, context=3, width=8, head_width=wide, heads=3)
    few = whole_sequences(3, 3)
    apart = few.clone()
    apart[:, 1] += 10
    for contexts in (few, apart, apart[apart[:, 0] < 2]):
        assert feature_rank(50, 3, 8, wide, 3, contexts=contexts) == expected_rank_for(config, contexts)
    assert expected_rank_for(config, few) < expected_rank(50, 3, 8, wide, 3, 27) or wide == 3


def test_contexts_beyond_all_numbers_take_no_time():
    assert expected_rank(2, 10**30, 4, 3, 5) == expected_rank(2, 100, 4, 3, 5)


def test_too_many_contexts_to_list():
    with pytest.raises(InputError, match=r"contexts=None: 50\^4 contexts are more than 20000"):
        feature_rank(50, 4, 10, 10, 3)


def test_numbers_that_no_small_polynomial_makes_zero():
    degree, coefficient = 2, 1
    x, y = independent_integers(2, degree, coefficient)
    monomials = [x**a * y**b for a in range(degree + 1) for b in range(degree + 1)]
    values = {
        sum(c * m for c, m in zip(polynomial, monomials, strict=True))
        for polynomial in itertools.product((-1, 0, 1), repeat=9)
    }
    assert len(values) == 3**9  # all differ, so that only the zero polynomial is zero
    smaller = [(x - 1) ** a * y**b for a in range(degree + 1) for b in range(degree + 1)]
    drawn = torch.randint(-1, 2, (3**9, 9), generator=generator(0, "polynomials")).tolist()
    assert len({sum(c * m for c, m in zip(p, smaller, strict=True)) for p in drawn}) < len(
        set(map(tuple, drawn))
    )


def test_bounds():
    assert (capacity(10, 10, 20), previous_capacity(10, 20)) == (210, 181)
    assert accuracy_bound(82, 100, 10) == pytest.approx(0.838)
    assert accuracy_bound(300, 100, 10) == 1
