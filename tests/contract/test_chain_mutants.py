"""Faulty chains and streams that the contract of chains must reject."""

import pytest
import torch

from contract.test_chains import BLOCKS, ISING, MODELS, REQUIRED, distribution
from mutants import chains as mutants
from mutants import streams
from refusals import expect_error, expect_failure
from samplers.chains.small_models import FunctionEnergy
from trialogue.data import Ising
from trialogue.samplers import BlockDynamics, BlockGibbs, Gibbs
from trialogue.samplers.chains import engine
from trialogue.testing import chains as distributions
from trialogue.testing import check_chain

STEPWISE = BlockGibbs(2)
"""A chain without compiled steps. Compiled steps would bypass the faulty streams."""

NOT_INVARIANT = [
    mutants.UniformGibbs(),
    mutants.StaleSweep("sweep"),
    mutants.ColdGibbs(),
    mutants.ColdGibbs("sweep"),
    mutants.NodewiseBlockGibbs(2),
    mutants.UntiltedAdaptiveDynamics(BLOCKS, distribution),
    mutants.ReluctantMetropolis(),
]


@pytest.mark.parametrize("mutant", NOT_INVARIANT, ids=lambda mutant: f"{type(mutant).__name__}")
@pytest.mark.parametrize("name", ["ising", "clique"])
def test_the_contract_rejects_chains_that_change_the_target(mutant, name):
    expect_failure("changes its target", check_chain, mutant, MODELS[name])


@pytest.mark.parametrize(
    ("mutant", "check", "message"),
    [
        (
            mutants.CountingGibbs(),
            distributions.check_repeatability,
            "returns different tokens for the same seed",
        ),
        (mutants.WritingGibbs(), distributions.check_repeatability, "modifies the tensor of its start"),
        (mutants.SharedGibbs(), distributions.check_independence, "differently if they run separately"),
    ],
)
def test_the_contract_rejects_chains_with_other_state(mutant, check, message):
    expect_failure(message, check, mutant, ISING)


def test_frequencies_reject_other_block_weights():
    """The target is invariant under any block weights, so that only the transitions differ."""
    weighted = BlockDynamics(**REQUIRED["block-dynamics"])
    mutant = mutants.UnweightedBlockDynamics(weighted.blocks, weighted.weights)
    assert distributions.stationarity_error(mutant, ISING) < 1e-14
    assert distributions.frequency_excess(mutant, weighted, ISING) > 0


@pytest.mark.parametrize("broken", [streams.EqualStreams, streams.StandingStreams])
def test_frequencies_reject_faulty_streams(monkeypatch, broken):
    monkeypatch.setattr(engine, "Streams", broken)
    expect_failure("exceeds the allowed L1 distance", distributions.check_frequencies, STEPWISE, ISING)


@pytest.mark.parametrize("broken", [streams.PlaceKeyedStreams, streams.SharedStreams])
def test_independence_rejects_shared_streams(monkeypatch, broken):
    monkeypatch.setattr(engine, "Streams", broken)
    expect_failure("differently if they run separately", distributions.check_independence, STEPWISE, ISING)


def test_stopping_rejects_streams_of_other_rows(monkeypatch):
    monkeypatch.setattr(engine, "Streams", streams.MisplacedStreams)
    expect_failure("copy", distributions.check_stopping, STEPWISE, ISING)


def test_a_trace_without_a_change_is_rejected(monkeypatch):
    original = engine._ActiveRun.changes

    def gaps(run):
        changes = original(run)
        return None if changes is None else type(changes)(*(column[1:] for column in changes))

    monkeypatch.setattr(engine._ActiveRun, "changes", gaps)
    expect_failure("lacks a change of step", distributions.check_trace, STEPWISE, ISING)


def test_samples_of_another_path_are_rejected(monkeypatch):
    original = engine._ActiveRun.advance

    def one_more(run, steps, bar):
        return original(run, steps + (steps > 1), bar)

    monkeypatch.setattr(engine._ActiveRun, "advance", one_more)
    expect_failure("another path", distributions.check_samples, STEPWISE, ISING)


def test_an_unknown_target_must_be_given():
    expect_error("target=None: Conditionals has no energies", check_chain, Gibbs(), MODELS["masked"])
    check_chain(Gibbs(), MODELS["masked"], target=MODELS["masked"].probabilities())
    anywhere = FunctionEnergy(lambda x: x.double().sum(1), vocab_size=3)
    expect_error("sites=None: give a number, because FunctionEnergy", check_chain, Gibbs(), anywhere)
    check_chain(Gibbs("sweep"), anywhere, sites=2)
    check_chain(BlockGibbs(2), Ising(torch.zeros(2, 2), torch.tensor([0.3, -0.2])))
