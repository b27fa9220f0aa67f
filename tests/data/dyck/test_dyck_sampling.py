"""Sampled Dyck strings and complete Dyck words, compared with enumeration and with a Python sampler."""

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from dyck_enumeration import DISTRIBUTIONS, String, mutated, open_more, words
from torch import Tensor

from refusals import expect_error
from trialogue.data import DyckWords
from trialogue.data.dyck.language import Dyck
from trialogue.data.dyck.states import innermost_types, pair_depths
from trialogue.oracles import pad_sequences
from trialogue.randomness import derive_seed
from trialogue.testing import check_oracle


def plain_strings(dyck: Dyck, n: int, seed: int, shortest: int, longest: int) -> list[list[int]]:
    """Sample strings in Python with SplitMix64 as published."""
    modulus = 1 << 64

    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % modulus
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % modulus
        return z ^ (z >> 31)

    drawn = []
    for row in range(n):
        key = mix((mix(row + 1) * 0x9E3779B97F4A7C15 + seed) % modulus)
        string: list[int] = []
        stack: list[int] = []
        for i in range(shortest + mix(key) % (longest - shortest + 1)):
            u = (mix((key + (i + 1) * 0x9E3779B97F4A7C15) % modulus) >> 1) / 2**63
            scale = dyck.open_prob if stack else 1.0
            bounds = itertools.accumulate(scale * p for p in dyck.type_probs)
            kind = sum(u >= bound for bound in bounds)
            forced = stack and (
                len(stack) == dyck.max_depth or (dyck.complete and len(stack) == dyck.length - i)
            )
            if forced or (kind == len(dyck.type_probs) and stack):
                string.append(2 * stack.pop() + 1)
            else:
                stack.append(min(kind, len(dyck.type_probs) - 1))
                string.append(2 * stack[-1])
        drawn.append(string)
    return drawn


@pytest.mark.parametrize("dyck", [*DISTRIBUTIONS, Dyck()], ids=repr)
def test_sampler_is_splitmix64_inverted(dyck):
    n = dyck.length
    for seed in (0, 12345):
        plain = plain_strings(dyck, 200, derive_seed(seed, "dyck", "sample"), n, n)
        assert dyck.sample(200, seed).tolist() == plain
    tokens, lengths = dyck.sample_prompts(200, (2, n - 1), seed=7)
    plain = pad_sequences(plain_strings(dyck, 200, derive_seed(7, "dyck", "prompts"), 2, n - 1), n - 1)
    assert torch.equal(tokens, plain[0])
    assert torch.equal(lengths, plain[1])


@pytest.mark.usefixtures("restored_threads")
def test_a_string_depends_on_the_seed_and_its_index_only():
    dyck, drawn = Dyck(8), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        drawn.append(dyck.sample(60_000, seed=5))
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[0], drawn[2])
    assert torch.equal(drawn[0][:100], dyck.sample(100, seed=5))
    assert not torch.equal(drawn[0][:100], dyck.sample(100, seed=6))
    assert dyck.sample(0).shape == (0, 8)


def check_frequencies(cells: np.ndarray, distribution: np.ndarray, radius: float) -> None:
    """Check the L1 distance of the frequencies of `cells` from `distribution` (Weissman et al. 2003) at alpha = 1e-9.

    A sampler with an L1 distance of at least 2 * `radius` passes with probability at most 1e-9.
    """
    assert math.sqrt(2 * (len(distribution) * math.log(2) + math.log(1e9)) / len(cells)) <= radius
    frequencies = np.bincount(cells, minlength=len(distribution)) / len(cells)
    assert len(frequencies) == len(distribution)
    assert abs(frequencies - distribution).sum() <= radius


def codes(tokens: Tensor, vocab: int) -> np.ndarray:
    return tokens.numpy() @ vocab ** np.arange(tokens.shape[1])


def check_sampler(sampler: Dyck, distribution: Dyck) -> None:
    every = torch.tensor(sorted(words(distribution.length, 2, distribution.max_depth or distribution.length)))
    order = np.sort(codes(every, 4))
    expected = np.empty(len(every))
    expected[np.searchsorted(order, codes(every, 4))] = distribution.log_prob(every).exp().numpy()
    drawn = codes(sampler.sample(1_000_000, seed=11), 4)
    place = np.searchsorted(order, drawn)
    stray = order[np.minimum(place, len(order) - 1)] != drawn
    check_frequencies(np.where(stray, len(order), place), np.append(expected, 0.0), radius=0.02)


@pytest.mark.parametrize("dyck", [Dyck(8), Dyck(8, (0.7, 0.3), 0.8, max_depth=2)], ids=repr)
def test_samples_follow_the_distribution(dyck):
    check_sampler(dyck, dyck)


def test_a_mutant_of_the_sampler_is_rejected():
    with pytest.raises(AssertionError):
        check_sampler(mutated(Dyck(8), open_more), Dyck(8))


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
    tokens, lengths = pad_sequences(ends)
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
    tokens, lengths = pad_sequences([(1,), (0, 0, 0), (0, 3), (0, 0, 2), (4,)])
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
