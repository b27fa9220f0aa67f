"""Truncation and the nucleus without sorting, compared with slow references, and truncation with every sampler."""

import math
from functools import cache
from itertools import product

import pytest
import torch

from refusals import expect_error
from samplers.reference_distributions import truncation
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.models.wrappers.cropped import Endless
from trialogue.randomness import numpy_generator
from trialogue.samplers import Truncated, generate, truncated
from trialogue.samplers.nucleus import nucleus

COINS = Table(lambda prefix: [0.5, 0.5], 2, max_length=3)


DISTRIBUTIONS = [
    numpy_generator(81, "distributions", index).dirichlet([0.7] * 5).tolist() for index in range(6)
]
DISTRIBUTIONS += [
    [0.25] * 4 + [0.0],
    [0.2] * 5,
    [0.1, 0.4, 0.1, 0.4, 0.0],
    [0.0, 0.0, 1.0, 0.0, 0.0],
    [0.25, 0.25, 0.0, 0.25, 0.25],
]
SETTINGS = [
    {"temperature": temperature, "top_p": top_p, "top_k": top_k}
    for temperature, top_p, top_k in product(
        (0.0, 0.5, 1.0, 2.0), (1e-9, 0.3, 0.5, 0.7, 0.95, 1.0), (None, 1, 3, 9)
    )
]
SETTINGS += [
    {"temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p}
    for temperature, top_p, top_k, min_p in product((0.7, 1.0), (0.8, 1.0), (None, 3), (1e-9, 0.2, 0.6, 1.0))
]


def truncation_error(oracle_type, settings) -> float:
    log_probs = oracle_type(COINS, **settings).truncate(
        torch.tensor(DISTRIBUTIONS, dtype=torch.float64).log()
    )
    expected = torch.tensor(
        [truncation(distribution, **settings) for distribution in DISTRIBUTIONS], dtype=torch.float64
    )
    return float((log_probs.exp() - expected).abs().max())


def test_truncation_agrees_with_the_definition():
    wrong = [settings for settings in SETTINGS if truncation_error(Truncated, settings) >= 1e-12]
    assert not wrong


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-300, 5e-324])
def test_temperatures_near_zero_are_greedy(dtype, temperature):
    distribution = torch.tensor([[0.3, 0.5, 0.2], [0.0, 0.4, 0.6]], dtype=dtype).log()
    truncated_log_probs = Truncated(COINS, temperature=temperature).truncate(distribution)
    assert truncated_log_probs.exp().flatten().tolist() == pytest.approx([0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    assert truncated_log_probs.dtype == dtype


def test_log_probabilities_are_computed_before_truncation():
    distribution = (0.7, 0.2, 0.1)
    table = Table(lambda prefix: distribution, 3, eos=2, max_length=1)
    once = truncated(table, temperature=0.5)
    for oracle, own in (
        (once, distribution),
        (truncated(once, top_p=0.99), distribution),
        (truncated(truncated(once, top_k=2), temperature=2.0), distribution),
        (Endless(once), (0.7 / 0.9, 0.2 / 0.9)),
        (truncated(Endless(once), top_p=0.99), (0.7 / 0.9, 0.2 / 0.9)),
    ):
        run = generate(oracle, num_samples=20)
        expected = [math.log(own[token]) for (token,) in run.sequences()]
        assert run.log_prob.tolist() == pytest.approx(expected, abs=1e-12)


JOINED = [
    ({"temperature": 0.5, "top_k": 3}, {"temperature": 4.0}),
    ({"top_k": 4}, {"top_k": 3, "top_p": 0.7}),
    ({"temperature": 0.6}, {"top_p": 0.7, "min_p": 0.1}),
    ({"top_p": 0.9}, {"min_p": 0.3}),
    ({"min_p": 0.1}, {"min_p": 0.3}),
    ({"top_p": 0.9, "temperature": 0.3}, {"temperature": 0.0}),
    ({"temperature": 0.0}, {"temperature": 2.0, "top_p": 0.5}),
]


def test_two_truncations_are_joined_if_the_result_is_the_same():
    distributions = torch.tensor(DISTRIBUTIONS, dtype=torch.float64)
    for inner, outer in JOINED:
        twice = truncated(truncated(COINS, **inner), **outer)
        assert twice.base is COINS
        expected = [truncation(truncation(distribution, **inner), **outer) for distribution in DISTRIBUTIONS]
        assert twice.truncate(distributions.log()).exp().tolist() == [
            pytest.approx(row, abs=1e-12) for row in expected
        ], (inner, outer)


@pytest.mark.parametrize("outer", [{"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.5}], ids=str)
@pytest.mark.parametrize("inner", [{"top_p": 0.9}, {"min_p": 0.1}], ids=str)
def test_truncations_that_cannot_be_joined_are_rejected(inner, outer):
    (name,) = outer
    expect_error(f"{name}=.*truncate once", truncated, truncated(COINS, **inner), **outer)
    with pytest.raises(InputError, match="oracle='Endless': the model wraps a truncated model"):
        truncated(Endless(truncated(Table(lambda prefix: [0.5, 0.5], 2, eos=1), **inner)), **outer)


LARGE = 3000


def large_distributions() -> torch.Tensor:
    """Return distributions over a large vocabulary: peaked, flat, with ties and with zeros."""
    draw = numpy_generator(82, "large distributions")
    logits = torch.from_numpy(draw.normal(size=(8, LARGE)))
    logits[0] *= 6
    logits[1] *= 0.01
    logits[2] = 0.0
    logits[3] = (logits[3] * 2).round()
    logits[4, 7:] = -math.inf
    logits[5] = torch.where(torch.arange(LARGE) % 2 == 0, 3.0, 0.0)
    return logits.log_softmax(-1)


LARGE_CUTS = [
    {"top_p": 0.5},
    {"top_p": 0.95},
    {"top_k": 1},
    {"top_k": 40, "top_p": 0.9},
    {"top_k": 256},
    {"top_k": 700},
    {"temperature": 0.3, "top_p": 0.9},
    {"top_p": 0.9, "min_p": 0.2},
    {"min_p": 0.05},
    {"temperature": 0},
]


def largest_cut_difference(oracle: Truncated, fields: dict[str, float]) -> float:
    worst = 0.0
    for distribution, cut in zip(large_distributions(), oracle.truncate(large_distributions()), strict=True):
        expected = torch.tensor(truncation(distribution.exp().tolist(), **fields), dtype=torch.float64)
        assert torch.equal(cut > -math.inf, expected > 0)
        worst = max(worst, float((cut.exp() - expected).abs().max()))
    return worst


def test_large_vocabularies_agree_with_the_definition():
    wrong = [cut for cut in LARGE_CUTS if largest_cut_difference(truncated(COINS, **cut), cut) >= 1e-9]
    assert not wrong


NUCLEUS_VOCAB = 3000
NUCLEUS_MASSES = (1e-9, 0.1, 0.5, 0.9, 0.95, 0.999)


def distributions() -> torch.Tensor:
    """Return flat and peaked distributions with many ties and with impossible tokens."""
    draw = numpy_generator(0, "large distributions")
    rows = [draw.normal(size=NUCLEUS_VOCAB) * scale for scale in (0.01, 1.0, 3.0, 8.0)]
    rows += [draw.integers(0, 4, NUCLEUS_VOCAB) * scale for scale in (0.0, 1.0, 5.0)]
    rows = [torch.tensor(row, dtype=torch.float32) for row in rows]
    for row in rows[:3]:
        rows.append(row.clone().index_fill_(0, torch.arange(0, NUCLEUS_VOCAB, 3), -math.inf))
    return torch.stack(rows).log_softmax(-1)


@cache
def sorted_weights(row: int) -> tuple[list[int], list[int]]:
    """Return the tokens of a row by descending probability, and the weights of all tokens times 2^160, as integers."""
    distribution = distributions()[row]
    weights = [int(math.ldexp(weight, 160)) for weight in (distribution - distribution.max()).exp().tolist()]
    return sorted(range(NUCLEUS_VOCAB), key=lambda token: (-weights[token], token)), weights


@cache
def by_definition(row: int, top_p: float) -> list[int]:
    """Return the tokens of a row's nucleus, from float weights that are summed exactly."""
    order, weights = sorted_weights(row)
    reach, total, kept = int(top_p * float(sum(weights))), 0, []
    for token in order:
        if total >= reach:
            break
        kept.append(token)
        total += weights[token]
    return sorted(kept)


def count_differences(cut, top_p: float) -> int:
    """Return the number of rows whose nucleus differs from the definition."""
    return sum(
        row.isfinite().nonzero()[:, 0].tolist() != by_definition(place, top_p)
        for place, row in enumerate(cut(distributions(), top_p))
    )


@pytest.mark.parametrize("top_p", NUCLEUS_MASSES)
def test_the_nucleus_agrees_with_the_definition(top_p):
    assert count_differences(nucleus, top_p) == 0


def _all_ties(log_probs, top_p):
    cut = nucleus(log_probs, top_p)
    smallest = log_probs.masked_fill(~cut.isfinite(), math.inf).amin(-1, keepdim=True)
    return log_probs.masked_fill(log_probs < smallest, -math.inf)


def test_a_faulty_nucleus_is_detected():
    assert sum(count_differences(_all_ties, top_p) for top_p in NUCLEUS_MASSES) > 0


@pytest.mark.usefixtures("restored_threads")
def test_threads_and_memory_layout_change_nothing():
    many, expected = distributions().repeat(20, 1), nucleus(distributions(), 0.9)
    torch.set_num_threads(4)
    assert torch.equal(nucleus(many, 0.9), expected.repeat(20, 1))
    assert torch.equal(nucleus(distributions().T.contiguous().T, 0.9), expected)
