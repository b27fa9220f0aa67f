"""Compare complete Dyck words of bounded depth with enumeration, and test the states of brackets."""

import functools
from collections import Counter

import numpy as np
import pytest
import torch
from dyck_enumeration import String, words

from refusals import expect_error
from trialogue.data import DyckWords
from trialogue.data.dyck.states import innermost_types, pair_depths
from trialogue.oracles import padded
from trialogue.testing import check_oracle

DISTRIBUTIONS = (
    DyckWords(8),
    DyckWords(6, (0.3, 0.7), 0.7, max_depth=2, end_prob=0.2),
    DyckWords(6, (1.0,), 0.4, 3, 0.6),
)


@functools.cache
def enumerated(distribution: DyckWords) -> dict[String, float]:
    """Return all words and their probabilities from the grammar and the process, conditioned on the length."""
    dyck = distribution.brackets
    assert dyck.max_depth is not None
    weights: dict[String, float] = {}
    for size in range(2, distribution.longest + 1, 2):
        for word in words(size, len(dyck.type_probs), dyck.max_depth):
            depth, weight = 0, distribution.end_prob
            for i, token in enumerate(word):
                if depth == 0:
                    weight *= 1 - distribution.end_prob if i else 1.0
                elif depth < dyck.max_depth:
                    weight *= 1 - dyck.open_prob if token & 1 else dyck.open_prob
                weight *= 1.0 if token & 1 else dyck.type_probs[token >> 1]
                depth += 1 - 2 * (token & 1)
            weights[word] = weight
    total = sum(weights.values())
    return {word: weight / total for word, weight in weights.items()}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_next_token_distributions_multiply_to_word_probabilities(distribution):
    exact = enumerated(distribution)
    ends = [(*word, distribution.eos) for word in exact]
    found = torch.zeros(len(ends), dtype=torch.float64)
    tokens, lengths = padded(ends)
    for i in range(tokens.shape[1]):
        rows = (lengths > i).nonzero()[:, 0]
        log_probs = distribution.next_log_probs(tokens[rows], torch.full((len(rows),), i))
        found[rows] += log_probs.gather(1, tokens[rows, i : i + 1])[:, 0]
    np.testing.assert_allclose(found.exp().numpy(), list(exact.values()), rtol=1e-12)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=repr)
def test_sampled_words_follow_the_distribution(distribution):
    tokens, lengths = distribution.sample(20_000, seed=3)
    assert distribution.is_member(tokens, lengths).all()
    counts = Counter(tuple(row[:n]) for row, n in zip(tokens.tolist(), lengths.tolist(), strict=True))
    exact = enumerated(distribution)
    assert set(counts) <= set(exact)

    def chi_square(probabilities: dict[String, float]) -> float:
        expected = {word: 20_000 * p for word, p in probabilities.items() if 20_000 * p >= 5}
        return sum((counts[word] - p) ** 2 / p for word, p in expected.items()) / len(expected)

    assert chi_square(exact) < 1.5
    twin = DyckWords(
        distribution.longest,
        distribution.brackets.type_probs,
        distribution.brackets.open_prob,
        distribution.brackets.max_depth or 1,
        0.4,
    )
    assert chi_square(enumerated(twin)) > 1.5
    again, _ = distribution.sample(100, seed=3)
    assert torch.equal(again, tokens[:100])


def test_oracle_keeps_its_contract():
    check_oracle(DISTRIBUTIONS[2], capacity=6, steps=8, seeds=(0,))


def test_distribution_after_an_invalid_prefix_is_uniform():
    distribution = DyckWords(4, max_depth=2)
    tokens, lengths = padded([(1,), (0, 0, 0), (0, 3), (0, 0, 2), (4,)])
    assert distribution.next_log_probs(tokens, lengths).exp().eq(1 / 5).all()


def test_states_of_brackets():
    tokens = torch.tensor([[0, 2, 3, 4, 5, 1, 2]])
    assert pair_depths(tokens).tolist() == [[1, 2, 2, 2, 2, 1, 1]]
    assert innermost_types(tokens).tolist() == [[0, 1, 0, 2, 0, -1, 1]]


@pytest.mark.parametrize(
    ("field", "arguments"),
    [("longest", (7,)), ("max_depth", (8, (0.5, 0.5), 0.5, 0)), ("end_prob", (8, (1.0,), 0.5, 3, 1))],
)
def test_bad_input(field, arguments):
    expect_error(f"^{field}=", DyckWords, *arguments)
