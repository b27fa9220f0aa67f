"""The contract of samplers rejects samplers, streams and judges that are broken on purpose, one call at a time."""

import re
from dataclasses import dataclass

import pytest
import torch

from mutants import judges, streams
from mutants import samplers as mutants
from trialogue.samplers import (
    Ancestral,
    Backtracking,
    BestOfN,
    BlockBestOfN,
    MaskedDecoding,
    Rejection,
    SequentialMonteCarlo,
    TokenwiseRejection,
    ValueGuided,
    WeightedRejection,
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


@pytest.mark.parametrize(
    ("mutant", "sampler"),
    [
        (mutants.UniformAncestral(), Ancestral()),
        (mutants.EarlyAncestral(), Ancestral()),
        (mutants.CredulousRejection(), Rejection()),
        (mutants.UniformTokenwise(), TokenwiseRejection()),
        (mutants.LastUncheckedMask(), MaskedDecoding()),
        (mutants.ShortStrideBacktracking(2, 3), Backtracking(2, 3)),
        (mutants.ContraryRedoBacktracking(2, 2), Backtracking(2, 2)),
        (mutants.IndifferentBestOfN(2), BestOfN(2)),
        (mutants.WorstOfN(2), BestOfN(2)),
        (mutants.EarlyScoringBlocks(2, (0,)), BlockBestOfN(2, (0,))),
        (mutants.FirstCandidateBlocks(2, (0,)), BlockBestOfN(2, (0,))),
        (mutants.WorstCandidateBlocks(2, (0,)), BlockBestOfN(2, (0,))),
        (mutants.FirstParticleMonteCarlo(2), SequentialMonteCarlo(2)),
        (mutants.UniformWeightedRejection(), WeightedRejection()),
        (mutants.BlindChildrenGuided(), ValueGuided()),
        (mutants.UniformGuided(), ValueGuided()),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_frequencies_reject(mutant, sampler):
    tree = VIABLE[0]
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


BROKEN = [
    *((mutant(), Ancestral()) for mutant in (mutants.UniformAncestral, mutants.TwiceAskingAncestral)),
    (mutants.EarlyAncestral(), Ancestral()),
    (mutants.UniformRejection(), Rejection()),
    (mutants.CredulousRejection(), Rejection()),
    (mutants.ResumingRejection(), Rejection()),
    (mutants.EarlyCheckingRejection(), Rejection()),
    (mutants.UniformTokenwise(), TokenwiseRejection()),
    (mutants.UniformMask(), MaskedDecoding()),
    (mutants.LastUncheckedTokenwise(), TokenwiseRejection()),
    (mutants.LastUncheckedMask(), MaskedDecoding()),
    (mutants.UnweightedMask(), MaskedDecoding()),
    (mutants.InverseWeightMask(), MaskedDecoding()),
    (mutants.UnlimitedBacktracking(1, 1), Backtracking(1, 1)),
    (mutants.ShortStrideBacktracking(1, 2), Backtracking(1, 2)),
    (mutants.ShortRedoBacktracking(1, 2), Backtracking(1, 2)),
    (mutants.RedoVerifyingBacktracking(2, 2), Backtracking(2, 2)),
    (mutants.CompletionSparingBacktracking(1, 1), Backtracking(1, 1)),
    (mutants.ContraryRedoBacktracking(1, 2), Backtracking(1, 2)),
    (mutants.HighestTieBacktracking(1, 1), Backtracking(1, 1)),
    (mutants.IndifferentBestOfN(2), BestOfN(2)),
    (mutants.WorstOfN(2), BestOfN(2)),
    *(
        (mutant(2, block_tokens=2), BlockBestOfN(2, block_tokens=2))
        for mutant in (mutants.ShorterBlocks, mutants.FirstCandidateBlocks, mutants.WorstCandidateBlocks)
    ),
    (mutants.EarlyScoringBlocks(2, (0,)), BlockBestOfN(2, (0,))),
    (mutants.EndlessFirstBlock(2, block_tokens=1), BlockBestOfN(2, block_tokens=1)),
    (mutants.ShortLineBlocks(2, (0,), min_tokens=2), BlockBestOfN(2, (0,), min_tokens=2)),
    *(
        (mutant(2, 1.0), SequentialMonteCarlo(2, 1.0))
        for mutant in (mutants.ForgetfulMonteCarlo, mutants.LosingMeanMonteCarlo, mutants.SumWeightMonteCarlo)
    ),
    (mutants.FirstParticleMonteCarlo(2), SequentialMonteCarlo(2)),
    *(
        (mutant(2, 1.0, "mask"), SequentialMonteCarlo(2, 1.0, "mask"))
        for mutant in (mutants.DraggedMonteCarlo, mutants.UnweighedDrawMonteCarlo, mutants.OwnLawMonteCarlo)
    ),
    (mutants.CountingMonteCarlo(1, 1.0, "rejection"), SequentialMonteCarlo(1, 1.0, "rejection")),
    (
        mutants.MiddleMonteCarlo(2, 1.0, resampling="systematic"),
        SequentialMonteCarlo(2, 1.0, resampling="systematic"),
    ),
    *(
        (mutant(), WeightedRejection())
        for mutant in (
            mutants.CountingRejection,
            mutants.FirstLoopRejection,
            mutants.ReplacingRejection,
            mutants.LateCountingRejection,
            mutants.UniformWeightedRejection,
            mutants.MasslessRejection,
            mutants.UnvaluedRejection,
        )
    ),
    *(
        (mutant(), ValueGuided())
        for mutant in (
            mutants.ActionLevelGuided,
            mutants.HalfParentGuided,
            mutants.BlindChildrenGuided,
            mutants.UniformGuided,
        )
    ),
]
"""All but those that only take the last of equal candidates, whose distribution is the same, and what concerns prompts.
"""


@pytest.mark.parametrize(("mutant", "sampler"), BROKEN, ids=lambda sampler: type(sampler).__name__)
def test_one_call_rejects_a_broken_walk_by_the_law_of_the_right_one(mutant, sampler):
    with pytest.raises(
        AssertionError, match=r" in place of | is not properly weighted|changes its distribution|cannot run"
    ):
        check_sampler(mutant, sampler)


@pytest.mark.parametrize(
    "mutant",
    [
        mutants.UnweightedMask(),
        mutants.InverseWeightMask(),
        mutants.LosingMeanMonteCarlo(2, 1.0),
        mutants.SumWeightMonteCarlo(2),
        mutants.CountingRejection(),
        mutants.MasslessRejection(),
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
