"""Tests of hidden streams and random seeds: the visible distribution by enumeration, and costs."""

import math
from collections import Counter

import pytest
import torch

from refusals import expect_error
from trialogue.errors import InputError
from trialogue.samplers import Ancestral
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.data.puzzles.hidden_streams import (
    HiddenStream,
    Independent,
    RandomBits,
    hidden_factors,
    random_seed,
)
from trialogue_lab.data.puzzles.random_primes import RandomNumbers, RandomPrimes
from uniform_rows import uniform_distribution


def distance(stream: HiddenStream, tuples: SemiprimeTuples) -> float:
    """Return the total variation between the visible distribution and the distribution of tuples."""
    return total_variation(
        stream.visible_distribution(exact_distribution(Ancestral(), stream).probabilities),
        uniform_distribution(tuples.states()),
    )


@pytest.mark.parametrize("order", ["product-first", "factors-first"])
@pytest.mark.parametrize("digits", [1, 2])
def test_hidden_factors_preserve_the_distribution_without_factoring(digits: int, order: str) -> None:
    tuples = SemiprimeTuples(digits, order)
    stream = hidden_factors(tuples)
    assert (stream.hidden, stream.max_length) == (2 * digits, 6 * digits)
    assert distance(stream, tuples) < 1e-14
    cost = tuples.arithmetic.cost
    assert (cost.factorings, cost.factoring_steps) == (0, 0)
    assert cost.multiplications > 0


@pytest.mark.parametrize("bits", [4, 9])
@pytest.mark.parametrize("digits", [1, 2])
def test_random_seed_is_within_its_bound_on_the_variation(digits: int, bits: int) -> None:
    tuples = SemiprimeTuples(digits)
    stream = random_seed(tuples, bits)
    hidden_distribution = exact_distribution(Ancestral(), stream).probabilities
    visible = stream.visible_distribution(hidden_distribution)
    assert len(hidden_distribution) == 2**bits
    variation = total_variation(visible, uniform_distribution(tuples.states()))
    assert variation <= min(1, tuples.size / 2**bits) + 1e-12
    seeds = Counter(round(probability * 2**bits) for probability in visible.values())
    assert set(seeds) <= {math.floor(2**bits / tuples.size), math.ceil(2**bits / tuples.size)}
    assert tuples.arithmetic.cost.factorings == 0
    if digits == 1 and bits == 4:
        assert variation < 1e-15


def test_independent_copies_have_a_product_distribution() -> None:
    hidden_distribution = exact_distribution(Ancestral(), Independent(RandomPrimes(1), 2)).probabilities
    assert hidden_distribution == pytest.approx({(p, q): 1 / 16 for p in (2, 3, 5, 7) for q in (2, 3, 5, 7)})


@pytest.mark.parametrize(
    ("stream", "prefix"),
    [
        (hidden_factors(SemiprimeTuples(2)), (1, 2)),
        (hidden_factors(SemiprimeTuples(2)), (1, 1, 1, 2, 0, 1)),
        (random_seed(SemiprimeTuples(1), 3), (0, 7, 1, 1)),
    ],
)
def test_hidden_tokens_of_probability_zero_are_rejected(stream, prefix: tuple[int, ...]) -> None:
    assert not stream.begins(prefix)
    with pytest.raises(InputError, match=r"^tokens=.*use a prefix of a sequence with positive probability"):
        stream.next_log_probs(torch.tensor([[*prefix, 0]]), torch.tensor([len(prefix)]))


def test_public_tokens_must_have_the_declared_length_and_vocabulary() -> None:
    for public in (lambda _: (1,), lambda _: (1, 1, 1), lambda _: (1, 5)):
        stream = HiddenStream(RandomBits(2), public, 2, 3)
        expect_error(r"^public=\(1.*give 2 tokens from 0 to 2", stream.weights, (0, 1))
    copying_stream = HiddenStream(RandomBits(2), lambda hidden: [*hidden], 2, 2)
    assert exact_distribution(Ancestral(), copying_stream).probabilities == pytest.approx(
        {(a, b, a, b): 0.25 for a in (0, 1) for b in (0, 1)}
    )
    assert copying_stream.weights((0, 1, 0, 1)) == [0.0, 0.0]


def test_source_without_a_maximum_length_is_rejected() -> None:
    expect_error(r"^bits=0", RandomBits, 0)
    endless = RandomNumbers(2)
    endless.max_length = None
    expect_error(r"^source='RandomNumbers'", HiddenStream, endless, lambda hidden: hidden, 2, 10)
