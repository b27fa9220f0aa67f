"""The contract of walks rejects walks, streams and judges that are broken on purpose."""

import pytest
import torch

from contract import test_walks as contract
from mutants import judges, streams
from mutants import walks as mutants
from trialogue.inference import (
    Ancestral,
    Backtracking,
    BestOfN,
    BlockBestOfN,
    Rejection,
    SequentialMonteCarlo,
    TokenwiseRejection,
    ValueGuided,
    WeightedRejection,
)
from trialogue.inference.laws import exact_law, total_variation
from trialogue.inference.walks.engine import groups, run
from trialogue.inference.walks.engine.recorder import Recorder


@pytest.mark.parametrize(
    ("mutant", "walk"),
    [
        (mutants.UniformAncestral(), Ancestral()),
        (mutants.EarlyAncestral(), Ancestral()),
        (mutants.CredulousRejection(), Rejection()),
        (mutants.UniformTokenwise(), TokenwiseRejection()),
        (mutants.LastUncheckedTokenwise("mask"), TokenwiseRejection("mask")),
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
    ids=lambda walk: type(walk).__name__,
)
def test_frequencies_reject(mutant, walk):
    tree = contract.VIABLE[0]
    laws = [exact_law(one, tree.table(), contract.ruled(tree)).probabilities for one in (mutant, walk)]
    assert total_variation(*laws) > contract.RADIUS  # so that the rejection is no luck
    assert contract.frequency_excess(mutant, walk) > 0


@pytest.mark.parametrize("broken", [streams.EqualStreams, streams.StandingStreams])
def test_frequencies_reject_streams(monkeypatch, broken):
    monkeypatch.setattr(groups, "Streams", broken)
    assert contract.frequency_excess(Ancestral(), Ancestral()) > 0


@pytest.mark.parametrize(
    "broken", [streams.PlaceKeyedStreams, streams.MisplacedStreams, streams.SharedStreams]
)
@pytest.mark.parametrize(
    "walk", [Rejection(), Backtracking(), BestOfN(2)], ids=lambda walk: type(walk).__name__
)
def test_batch_independence_rejects(monkeypatch, broken, walk):
    monkeypatch.setattr(groups, "Streams", broken)
    with pytest.raises(AssertionError):
        contract.test_samples_do_not_depend_on_the_batch(walk)


def test_a_judge_that_asks_twice_is_told_apart(monkeypatch):
    monkeypatch.setattr(run, "Judge", judges.ForgetfulJudge)
    with pytest.raises(AssertionError):
        contract.test_a_verifier_judges_each_prefix_once(TokenwiseRejection())


def test_a_trace_without_a_move_is_told_apart(monkeypatch):
    def gaps(recorder, step, groups, moves):
        rows = torch.arange(len(moves.source))
        kept = moves._replace(token=moves.token.masked_fill(rows == 0, -1))
        whole(recorder, step, groups, kept)

    whole = Recorder.record
    monkeypatch.setattr(Recorder, "record", gaps)
    with pytest.raises(AssertionError):
        contract.test_its_trace_replays_to_its_samples(BestOfN(2))
