"""The sampler of Dyck strings: number for number, and in distribution, with mutants that must be rejected."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from dyck_enumeration import (
    LAWS,
    final_run_law,
    lower_ceiling,
    mutated,
    open_more,
    prefixes,
    raise_ceiling,
    words,
)
from torch import Tensor

from trialogue.data.dyck.language import Dyck
from trialogue.oracles import padded
from trialogue.randomness import seed_of


def swap_types(dyck: Dyck) -> None:
    twin = Dyck(dyck.length, dyck.type_probs[::-1], dyck.open_prob)
    dyck._thresholds, dyck._log_law = twin._thresholds, twin._log_law


def plain_strings(dyck: Dyck, n: int, seed: int, shortest: int, longest: int) -> list[list[int]]:
    """The sampler in Python integers: SplitMix64 as published, and the distribution token by token."""
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


@pytest.mark.parametrize("dyck", [*LAWS, Dyck()], ids=repr)
def test_sampler_is_splitmix64_inverted(dyck: Dyck) -> None:
    n = dyck.length
    for seed in (0, 12345):
        plain = plain_strings(dyck, 200, seed_of(seed, "dyck", "sample"), n, n)
        assert dyck.sample(200, seed).tolist() == plain
    tokens, lengths = dyck.sample_prompts(200, (2, n - 1), seed=7)
    plain = padded(plain_strings(dyck, 200, seed_of(7, "dyck", "prompts"), 2, n - 1), n - 1)
    assert torch.equal(tokens, plain[0])
    assert torch.equal(lengths, plain[1])


def test_a_string_depends_on_its_seed_and_number_alone() -> None:
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
    """L1 distance of the frequencies of `cells` from `distribution`, by Weissman et al. (2003), at alpha = 1e-9.

    A sampler whose L1 distance from the distribution is at least 2 * `radius` is missed with probability 1e-9 at most.
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
def test_sampler_has_the_law(dyck: Dyck) -> None:
    check_sampler(dyck, dyck)


@pytest.mark.parametrize("change", [raise_ceiling, lower_ceiling, swap_types, open_more])
def test_sampler_mutants_are_rejected(change: Callable[[Dyck], object]) -> None:
    with pytest.raises(AssertionError):
        check_sampler(mutated(Dyck(8), change), Dyck(8))


def test_sampler_at_the_thesis_scale() -> None:
    def runs(dyck: Dyck) -> np.ndarray:
        x = dyck.sample(200_000, seed=2)
        before = torch.cat([torch.zeros(len(x), 1).long(), dyck.depth(x)[:, :-1]], 1)
        return (before == torch.arange(32, 0, -1)).sum(1).numpy() - 1

    check_frequencies(runs(Dyck()), final_run_law(Dyck()), radius=0.02)
    with pytest.raises(AssertionError):
        check_frequencies(runs(mutated(Dyck(), open_more)), final_run_law(Dyck()), radius=0.02)


def test_strings_are_independent() -> None:
    dyck = Dyck(4)
    every = torch.tensor(sorted(words(4, 2, 4)))
    order = np.argsort(codes(every, 4))
    distribution = dyck.log_prob(every).exp().numpy()[order]
    x = np.searchsorted(codes(every, 4)[order], codes(dyck.sample(200_001, seed=0), 4))
    y = np.searchsorted(codes(every, 4)[order], codes(dyck.sample(200_001, seed=1), 4))
    z = np.searchsorted(codes(every, 4)[order], codes(dyck.sample_prompts(200_001, (4, 4), seed=0)[0], 4))
    for a, b in ((x[:-1], x[1:]), (x, y), (x, z)):
        check_frequencies(8 * a + b, np.outer(distribution, distribution).ravel(), radius=0.03)
    with pytest.raises(AssertionError):
        check_frequencies(8 * x + x, np.outer(distribution, distribution).ravel(), radius=0.03)


def test_prompts_have_the_prefix_law() -> None:
    dyck = Dyck(6, (0.8, 0.2))
    tokens, lengths = dyck.sample_prompts(200_000, (2, 4), seed=0)
    assert torch.equal(tokens * (torch.arange(4) >= lengths[:, None]), torch.zeros_like(tokens))
    every = [s for s in sorted(prefixes(6, 2, None, True)) if 2 <= len(s) <= 4]
    shift = 5 ** torch.arange(4)
    seen = torch.arange(4) < lengths[:, None]
    keys = {sum((t + 1) * 5**i for i, t in enumerate(s)): cell for cell, s in enumerate(every)}
    cells = np.array([keys[key] for key in (((tokens + 1) * seen) @ shift).tolist()])
    distribution = dyck.prefix_log_prob(*padded(every)).exp().numpy() / 3
    check_frequencies(cells, distribution, radius=0.03)
