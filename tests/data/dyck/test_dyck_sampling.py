"""Compare sampled Dyck strings with a Python sampler and with the exact distribution, and reject mutants."""

import itertools
import math

import numpy as np
import pytest
import torch
from dyck_enumeration import (
    DISTRIBUTIONS,
    lower_ceiling,
    mutated,
    open_more,
    words,
)
from torch import Tensor

from trialogue.data.dyck.language import Dyck
from trialogue.oracles import padded
from trialogue.randomness import seed_of


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
        plain = plain_strings(dyck, 200, seed_of(seed, "dyck", "sample"), n, n)
        assert dyck.sample(200, seed).tolist() == plain
    tokens, lengths = dyck.sample_prompts(200, (2, n - 1), seed=7)
    plain = padded(plain_strings(dyck, 200, seed_of(7, "dyck", "prompts"), 2, n - 1), n - 1)
    assert torch.equal(tokens, plain[0])
    assert torch.equal(lengths, plain[1])


def test_a_string_depends_on_the_seed_and_its_index_only():
    dyck, threads = Dyck(8), torch.get_num_threads()
    drawn = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            drawn.append(dyck.sample(60_000, seed=5))
    finally:
        torch.set_num_threads(threads)
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


@pytest.mark.parametrize("change", [lower_ceiling, open_more])
def test_sampler_mutants_are_rejected(change):
    with pytest.raises(AssertionError):
        check_sampler(mutated(Dyck(8), change), Dyck(8))
