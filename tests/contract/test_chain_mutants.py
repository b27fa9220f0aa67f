"""The contract of chains rejects chains and streams that are broken on purpose."""

import pytest

from contract import test_chains as contract
from mutants import chains as mutants
from mutants import streams
from trialogue.inference import BlockDynamics, BlockGibbs
from trialogue.inference.chains import engine

STEPWISE = BlockGibbs(2)
"""A chain without compiled steps, which would draw the numbers of the streams themselves."""

NOT_INVARIANT = [
    mutants.UniformGibbs(),
    mutants.StaleSweep("sweep"),
    mutants.ColdGibbs(),
    mutants.ColdGibbs("sweep"),
    mutants.NodewiseBlockGibbs(2),
    mutants.UntiltedAdaptiveDynamics(contract.BLOCKS, contract.law),
    mutants.ReluctantMetropolis(),
]


@pytest.mark.parametrize("mutant", NOT_INVARIANT, ids=lambda mutant: f"{type(mutant).__name__}")
@pytest.mark.parametrize("name", ["ising", "clique"])
def test_invariance_rejects(mutant, name):
    with pytest.raises(AssertionError):
        contract.test_it_leaves_the_target_invariant(mutant, name)


def test_frequencies_reject_other_weights():
    """The target is invariant under any weights: only the transitions tell."""
    weighted = BlockDynamics(**contract.REQUIRED["block-dynamics"])
    mutant = mutants.UnweightedBlockDynamics(weighted.blocks, weighted.weights)
    assert contract.stationarity_error(mutant, "ising") < 1e-14
    assert contract.frequency_excess(mutant, weighted) > 0


@pytest.mark.parametrize("broken", [streams.EqualStreams, streams.StandingStreams])
def test_frequencies_reject_streams(monkeypatch, broken):
    monkeypatch.setattr(engine, "Streams", broken)
    assert contract.frequency_excess(STEPWISE, STEPWISE) > 0


@pytest.mark.parametrize("broken", [streams.PlaceKeyedStreams, streams.SharedStreams])
def test_independence_of_the_others_rejects(monkeypatch, broken):
    monkeypatch.setattr(engine, "Streams", broken)
    with pytest.raises(AssertionError):
        contract.test_a_chain_does_not_depend_on_the_others(STEPWISE)


def test_stopping_rejects_streams_that_stay_where_rows_leave(monkeypatch):
    monkeypatch.setattr(engine, "Streams", streams.MisplacedStreams)
    with pytest.raises(AssertionError):
        contract.test_a_chain_that_stops_does_not_disturb_the_others(STEPWISE)


def test_a_trace_without_a_change_is_told_apart(monkeypatch):
    whole = engine._Run.changes

    def gaps(run):
        changes = whole(run)
        return None if changes is None else type(changes)(*(column[1:] for column in changes))

    monkeypatch.setattr(engine._Run, "changes", gaps)
    with pytest.raises(AssertionError):
        contract.test_its_trace_replays_to_its_states(STEPWISE)
