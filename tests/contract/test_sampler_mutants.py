"""The contract of samplers rejects samplers, streams and judges that are broken on purpose, one call at a time."""

import re
from dataclasses import dataclass, fields
from typing import Any

import pytest
import torch

from mutants import judges, streams
from mutants import samplers as mutants
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    BestOfN,
    Rejection,
    Sampler,
    TokenwiseRejection,
)
from trialogue.samplers.exact import exact_distribution, total_variation
from trialogue.samplers.prefix.engine import groups, rules
from trialogue.samplers.prefix.engine.recorder import TraceRecorder
from trialogue.testing import check_sampler, runs
from trialogue.testing.distributions import (
    check_its_weights,
    check_its_weights_under_truncation,
    check_what_it_declares,
    ruled,
)
from trialogue.testing.trees import VIABLE


def right(mutant: Sampler[Any]) -> Sampler[Any]:
    """The sampler that `mutant` breaks, with the same fields."""
    kind = next(kind for kind in type(mutant).__mro__ if kind.__module__.startswith("trialogue."))
    return kind(**{field.name: getattr(mutant, field.name) for field in fields(mutant)})


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.CredulousRejection(),
        mutants.WorstOfN(2),
        mutants.FirstParticleMonteCarlo(2),
        mutants.BlindChildrenGuided(),
    ],
    ids=repr,
)
def test_frequencies_reject(mutant):
    tree, sampler = VIABLE[0], right(mutant)
    distributions = [
        exact_distribution(one, tree.table(), ruled(tree)).probabilities for one in (mutant, sampler)
    ]
    assert total_variation(*distributions) > runs.RADIUS  # so that the rejection is no luck
    with pytest.raises(AssertionError, match="frequencies of 20000 samples"):
        runs.check_frequencies(mutant, sampler)


@pytest.mark.parametrize("broken", [streams.EqualStreams, streams.StandingStreams])
def test_frequencies_reject_streams(monkeypatch, broken):
    monkeypatch.setattr(groups, "Streams", broken)
    with pytest.raises(AssertionError, match="frequencies of 20000 samples"):
        runs.check_frequencies(Ancestral())


@pytest.mark.parametrize(
    "broken", [streams.PlaceKeyedStreams, streams.MisplacedStreams, streams.SharedStreams]
)
@pytest.mark.parametrize(
    "sampler", [Rejection(), Backtracking(), BestOfN(2)], ids=lambda sampler: type(sampler).__name__
)
def test_batch_independence_rejects(monkeypatch, broken, sampler):
    monkeypatch.setattr(groups, "Streams", broken)
    with pytest.raises(AssertionError, match="a batch of"):
        runs.check_the_batch_does_not_matter(sampler)


def test_a_judge_that_asks_twice_is_told_apart(monkeypatch):
    monkeypatch.setattr(rules, "Judge", judges.ForgetfulJudge)
    with pytest.raises(AssertionError, match="was asked again about"):
        runs.check_prefixes_are_judged_once(TokenwiseRejection())


def test_a_trace_without_a_move_is_told_apart(monkeypatch):
    def gaps(recorder, step, groups, moves):
        rows = torch.arange(len(moves.source))
        kept = moves._replace(token=moves.token.masked_fill(rows == 0, -1))
        whole(recorder, step, groups, kept)

    whole = TraceRecorder.record
    monkeypatch.setattr(TraceRecorder, "record", gaps)
    with pytest.raises(AssertionError, match=r"its trace does not lead|holds . tokens"):
        runs.check_its_trace(BestOfN(2))


@pytest.mark.parametrize(
    "liar",
    [
        mutants.StraightRejection(),
        mutants.StraightTokenwise(),
        mutants.StraightBestOfN(2),
        mutants.StraightGuided(),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_a_walk_that_goes_back_and_denies_it_is_told_apart(liar):
    with pytest.raises(AssertionError, match="goes_back=False"):
        runs.check_its_trace(liar)


@dataclass(frozen=True)
class Own(Ancestral):
    """A sampler with names of its own, all of which are allowed."""

    field: int = 1
    _private = True

    def method(self):
        return self.field


class Misspelt(Own):
    weigthed = True


class MisspeltProperty(Own):
    @property
    def fails_reason(self):
        return "never"


class Unheard(Own):
    temperature = 1.0


class Undecided(Own):
    goes_back = 1


def test_attributes_that_a_sampler_does_not_have_are_told():
    check_what_it_declares(Own())
    for sampler, told in (
        (Misspelt(), "Sampler has no attribute weigthed: did you mean weighted?"),
        (MisspeltProperty(), "Sampler has no attribute fails_reason: did you mean failure_reason?"),
        (
            Unheard(),
            "Sampler has no attribute temperature: the attributes are failure_reason, few_children, goes",
        ),
        (Undecided(), "goes_back=1: use True or False"),
    ):
        with pytest.raises(AssertionError, match=re.escape(told)):
            check_sampler(sampler)


@pytest.mark.parametrize("mutant", mutants.WRONG_DISTRIBUTIONS, ids=repr)
def test_one_call_rejects_a_broken_sampler_by_the_distribution_of_the_right_one(mutant):
    told = r" in place of | is not properly weighted|changes its distribution|cannot run"
    with pytest.raises(AssertionError, match=told):
        check_sampler(mutant, right(mutant))


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.UnweightedMask(),
        mutants.InverseWeightMask(),
        mutants.LosingMeanMonteCarlo(2, 1.0),
        mutants.SumWeightMonteCarlo(2),
        mutants.CountingRejection(),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_wrong_weights_need_no_other_walk_to_be_told_apart(mutant):
    with pytest.raises(AssertionError, match="not properly weighted"):
        check_its_weights(mutant)


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.BoastfulMask(mask_first=False),
        mutants.BoastfulMask(),
        mutants.UncutMonteCarlo(2, 0.5, "mask"),
    ],
    ids=repr,
)
def test_wrong_weights_under_truncation_are_told_apart(mutant):
    check_its_weights(mutant)
    with pytest.raises(AssertionError, match="not properly weighted"):
        check_its_weights_under_truncation(mutant)
