"""Truncation against a slow reference, token by token, and with every sampler."""

import math
from itertools import product

import pytest
import torch

from mutants import truncation as mutants
from samplers.reference_laws import backtracking, largest_difference, tokenwise, truncation
from trialogue.data.table import Table
from trialogue.errors import InputError
from trialogue.models.cropped import Endless
from trialogue.randomness import numpy_generator
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    MaskedDecoding,
    Truncated,
    generate,
    truncated,
)
from trialogue.samplers.exact import exact_distribution
from trialogue.testing.trees import TREES, RandomTree

COINS = Table(lambda prefix: [0.5, 0.5], 2, max_length=3)


LAWS = [numpy_generator(81, "distributions", index).dirichlet([0.7] * 5).tolist() for index in range(6)]
LAWS += [[0.2] * 5, [0.1, 0.4, 0.1, 0.4, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.0, 0.25, 0.25]]
SETTINGS = [
    {"temperature": temperature, "top_p": top_p, "top_k": top_k}
    for temperature, top_p, top_k in product(
        (0.0, 0.5, 1.0, 2.0), (1e-9, 0.3, 0.7, 0.95, 1.0), (None, 1, 3, 9)
    )
]
SETTINGS += [
    {"temperature": temperature, "top_p": top_p, "top_k": top_k, "min_p": min_p}
    for temperature, top_p, top_k, min_p in product((0.7, 1.0), (0.8, 1.0), (None, 3), (1e-9, 0.2, 0.6, 1.0))
]


def truncation_error(oracle_type, settings) -> float:
    answers = oracle_type(COINS, **settings).truncate(torch.tensor(LAWS, dtype=torch.float64).log())
    expected = torch.tensor(
        [truncation(distribution, **settings) for distribution in LAWS], dtype=torch.float64
    )
    return float((answers.exp() - expected).abs().max())


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(map(str, settings.values())))
def test_truncation_agrees_with_the_truncation(settings):
    assert truncation_error(Truncated, settings) < 1e-12


@pytest.mark.parametrize(
    "mutant", [mutants.BoundaryDropping, mutants.HighestTie, mutants.LateTemperature, mutants.Unnormalised]
)
def test_broken_truncation_is_told_apart(mutant):
    assert max(truncation_error(mutant, settings) for settings in SETTINGS) > 1e-3


def test_the_token_that_reaches_top_p_is_kept():
    distribution = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64).log()
    kept = {
        top_p: int((Truncated(COINS, top_p=top_p).truncate(distribution) > -math.inf).sum())
        for top_p in (0.1, 0.49, 0.51, 0.74, 0.76, 0.99, 1.0)
    }
    assert kept == {0.1: 1, 0.49: 1, 0.51: 2, 0.74: 2, 0.76: 3, 0.99: 4, 1.0: 4}


def test_top_p_stops_where_it_is_reached_exactly():
    distribution = torch.full((1, 4), 0.25, dtype=torch.float64).log()
    kept = [
        int((Truncated(COINS, top_p=p).truncate(distribution) > -math.inf).sum())
        for p in (0.25, 0.5, 0.75, 1.0)
    ]
    assert kept == [1, 2, 3, 4]


def test_ties_are_ordered_by_index_in_a_large_vocabulary():
    distribution = torch.zeros(3, 5000).log_softmax(-1)
    kept = Truncated(COINS, top_k=10).truncate(distribution) > -math.inf
    assert kept.nonzero()[:, 1].view(3, 10).tolist() == [list(range(10))] * 3


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"top_p": 1e-9}, {"top_k": 1}])
def test_greedy_decoding_takes_the_first_of_the_most_probable(settings):
    table = Table(lambda prefix: [0.2, 0.4, 0.4], 3, max_length=3)
    distribution = exact_distribution(Ancestral(), truncated(table, **settings))
    assert distribution.probabilities == {(1, 1, 1): pytest.approx(1.0)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-300, 5e-324])
def test_temperatures_near_zero_are_greedy(dtype, temperature):
    distribution = torch.tensor([[0.3, 0.5, 0.2], [0.0, 0.4, 0.6]], dtype=dtype).log()
    answer = Truncated(COINS, temperature=temperature).truncate(distribution)
    assert answer.exp().flatten().tolist() == pytest.approx([0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    assert answer.dtype == dtype


def test_an_oracle_left_whole_answers_as_it_is():
    distribution = torch.tensor(LAWS).log()
    assert Truncated(COINS).truncate(distribution) is distribution


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_walks_run_on_truncated_oracles(tree):
    settings = {"temperature": 0.7, "top_p": 0.8}

    class Cut(RandomTree):
        def conditional(self, prefix):
            return tuple(truncation(tree.conditional(prefix), **settings))

    cut = Cut(tree.seed, tree.vocab, tree.horizon, tree.eos, tree.sparse)
    oracle = truncated(tree.table(), **settings)
    assert oracle.base.max_length == oracle.max_length == tree.horizon
    assert (
        largest_difference(exact_distribution(Ancestral(), oracle).probabilities, cut.distribution()) < 1e-12
    )
    mask = exact_distribution(MaskedDecoding(mask_first=False), oracle, tree.judges)
    distribution, _, stuck = tokenwise(cut, tree.judges)
    assert largest_difference(mask.probabilities, distribution) < 1e-12
    assert mask.failed == pytest.approx(stuck, abs=1e-12)
    again = exact_distribution(Backtracking(1, 2), oracle, tree.judges)
    distribution, queries = backtracking(cut, tree.judges, 1, 2)
    assert largest_difference(again.probabilities, distribution) < 1e-12
    assert again.expected_calls == pytest.approx(queries)


def test_log_probabilities_are_those_before_any_truncation():
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


@pytest.mark.parametrize(("inner", "outer"), JOINED, ids=str)
def test_truncated_twice_is_truncated_once_where_that_is_the_same(inner, outer):
    twice = truncated(truncated(COINS, **inner), **outer)
    assert twice.base is COINS
    for distribution in LAWS:
        expected = truncation(truncation(distribution, **inner), **outer)
        answer = twice.truncate(torch.tensor([distribution], dtype=torch.float64).log()).exp()[0]
        assert answer.tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("outer", [{"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.5}], ids=str)
@pytest.mark.parametrize("inner", [{"top_p": 0.9}, {"min_p": 0.1}], ids=str)
def test_truncations_that_are_not_one_are_refused(inner, outer):
    (name,) = outer
    with pytest.raises(InputError, match=f"{name}=.*truncate once"):
        truncated(truncated(COINS, **inner), **outer)
    with pytest.raises(InputError, match="oracle='Endless': it lies upon a truncated oracle"):
        truncated(Endless(truncated(Table(lambda prefix: [0.5, 0.5], 2, eos=1), **inner)), **outer)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1.0}, "temperature=-1.0"),
        ({"temperature": math.inf}, "temperature=inf"),
        ({"temperature": math.nan}, "temperature=nan"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"top_p": 0}, "top_p=0: .*temperature=0 decodes greedily"),
        ({"top_p": math.nan}, "top_p=nan"),
        ({"top_k": 0}, "top_k=0"),
        ({"min_p": 1.1}, "min_p=1.1"),
    ],
)
def test_settings_out_of_range_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        truncated(COINS, **settings)


LARGE = 3000


def large_laws() -> torch.Tensor:
    """Distributions over a large vocabulary: peaked, flat, with ties inside and outside of the nucleus, with zeros."""
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
    for distribution, cut in zip(large_laws(), oracle.truncate(large_laws()), strict=True):
        expected = torch.tensor(truncation(distribution.exp().tolist(), **fields), dtype=torch.float64)
        assert torch.equal(cut > -math.inf, expected > 0)
        worst = max(worst, float((cut.exp() - expected).abs().max()))
    return worst


@pytest.mark.parametrize("fields", LARGE_CUTS, ids=str)
def test_large_vocabularies_are_cut_as_small_ones_are(fields):
    assert largest_cut_difference(truncated(COINS, **fields), fields) < 1e-9
