"""Faulty samplers, streams and judges that the contract of samplers must reject."""

import re
from dataclasses import dataclass, fields
from typing import Any

import pytest
import torch

from mutants import judges, streams
from mutants import samplers as mutants
from refusals import expect_failure
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
    check_declarations,
    check_weights,
    check_weights_under_truncation,
    ruled,
)
from trialogue.testing.trees import VIABLE


def correct_sampler(mutant: Sampler[Any]) -> Sampler[Any]:
    """Return the correct sampler with the same fields as `mutant`."""
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
def test_frequencies_reject_faulty_samplers(mutant):
    tree, sampler = VIABLE[0], correct_sampler(mutant)
    distributions = [
        exact_distribution(one, tree.table(), ruled(tree)).probabilities for one in (mutant, sampler)
    ]
    assert total_variation(*distributions) > runs.RADIUS  # the rejection does not depend on chance
    expect_failure("frequencies of 20000 samples", runs.check_frequencies, mutant, sampler)


@pytest.mark.parametrize("broken", [streams.EqualStreams, streams.StandingStreams])
def test_frequencies_reject_faulty_streams(monkeypatch, broken):
    monkeypatch.setattr(groups, "Streams", broken)
    expect_failure("frequencies of 20000 samples", runs.check_frequencies, Ancestral())


@pytest.mark.parametrize(
    "broken", [streams.PlaceKeyedStreams, streams.MisplacedStreams, streams.SharedStreams]
)
@pytest.mark.parametrize(
    "sampler", [Rejection(), Backtracking(), BestOfN(2)], ids=lambda sampler: type(sampler).__name__
)
def test_batch_independence_rejects_faulty_streams(monkeypatch, broken, sampler):
    monkeypatch.setattr(groups, "Streams", broken)
    expect_failure("a batch of", runs.check_batch_independence, sampler)


def test_a_judge_with_repeated_calls_is_rejected(monkeypatch):
    monkeypatch.setattr(rules, "Judge", judges.ForgetfulJudge)
    expect_failure("more than once", runs.check_single_evaluation, TokenwiseRejection())


def test_a_trace_without_a_move_is_rejected(monkeypatch):
    def gaps(recorder, step, groups, moves):
        rows = torch.arange(len(moves.source))
        kept = moves._replace(token=moves.token.masked_fill(rows == 0, -1))
        original(recorder, step, groups, kept)

    original = TraceRecorder.record
    monkeypatch.setattr(TraceRecorder, "record", gaps)
    expect_failure(r"its trace does not lead|holds . tokens", runs.check_sample_traces, BestOfN(2))


@pytest.mark.parametrize(
    "sampler",
    [
        mutants.StraightRejection(),
        mutants.StraightTokenwise(),
        mutants.StraightBestOfN(2),
        mutants.StraightGuided(),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_an_undeclared_return_to_a_shorter_prefix_is_rejected(sampler):
    expect_failure("goes_back=False", runs.check_sample_traces, sampler)


@dataclass(frozen=True)
class Extended(Ancestral):
    """A sampler with additional names, all of which are allowed."""

    field: int = 1
    _private = True

    def method(self):
        return self.field


class Misspelt(Extended):
    weigthed = True


class MisspeltProperty(Extended):
    @property
    def fails_reason(self):
        return "never"


class WithTemperature(Extended):
    temperature = 1.0


class WithNumber(Extended):
    goes_back = 1


def test_unknown_attributes_of_samplers_are_reported():
    check_declarations(Extended())
    for sampler, message in (
        (Misspelt(), "Sampler has no attribute weigthed: did you mean weighted?"),
        (MisspeltProperty(), "Sampler has no attribute fails_reason: did you mean failure_reason?"),
        (
            WithTemperature(),
            "Sampler has no attribute temperature: the attributes are failure_reason, few_children, goes",
        ),
        (WithNumber(), "goes_back=1: use True or False"),
    ):
        expect_failure(re.escape(message), check_sampler, sampler)


@pytest.mark.parametrize("mutant", mutants.WRONG_DISTRIBUTIONS, ids=repr)
def test_the_check_rejects_faulty_samplers_by_their_distribution(mutant):
    message = r" instead of | is not properly weighted|changes its distribution|cannot run"
    expect_failure(message, check_sampler, mutant, correct_sampler(mutant))


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
def test_wrong_weights_are_rejected_without_a_reference(mutant):
    expect_failure("not properly weighted", check_weights, mutant)


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.BoastfulMask(mask_first=False),
        mutants.BoastfulMask(),
        mutants.UncutMonteCarlo(2, 0.5, "mask"),
    ],
    ids=repr,
)
def test_wrong_weights_under_truncation_are_rejected(mutant):
    check_weights(mutant)
    expect_failure("not properly weighted", check_weights_under_truncation, mutant)
