"""Requirements on every chain in the registry, and faulty chains that they reject."""

from collections.abc import Iterator
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import torch

from mutants import chains as mutants
from mutants import streams
from refusals import expect_error, expect_failure
from samplers.chains.small_models import Conditionals, Energies, FunctionEnergy, random_ising, random_joint
from trialogue.data import Ising, PottsChain
from trialogue.oracles import enumerate_sequences
from trialogue.samplers import (
    CHAINS,
    BlockDynamics,
    BlockGibbs,
    ChainRule,
    Gibbs,
    IndependentParallel,
    MaskedMetropolis,
)
from trialogue.samplers.chains import engine
from trialogue.samplers.exact import transition_matrix
from trialogue.testing import chains as distributions
from trialogue.testing import check_chain

BLOCKS = ((0, 1), (2,), (1, 3), (0, 3))


def distribution(tokens):
    """Return a distribution over four blocks that depends on the state."""
    first, last, total = tokens[:, 0], tokens[:, -1], tokens.sum(1)
    return torch.stack((1 + first, 1 + 2 * last, 1 + total, 2 - first), 1).double().log().softmax(1)


REQUIRED = {
    "block-gibbs": {"block_size": 2},
    "block-dynamics": {"blocks": BLOCKS, "weights": (1.0, 2.0, 0.5, 0.25)},
    "adaptive-block-dynamics": {"blocks": BLOCKS, "distribution": distribution},
}
"""Required fields of chains."""

NAMES = [name for name in CHAINS if name != "refinement"]
"""Refinement has no energy and is tested in `tests/samplers/chains/test_refinement.py`."""


def variants(name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the default settings and, one at a time, every other option of the fields."""
    yield name, {}
    for field, kind in get_type_hints(CHAINS[name]).items():
        for option in get_args(kind)[1:] if get_origin(kind) is Literal else ():
            yield name, {field: option}


@pytest.fixture(
    params=[variant for name in NAMES for variant in variants(name)],
    ids=lambda variant: "-".join((variant[0], *variant[1].values())),
)
def chain(request):
    name, options = request.param
    return CHAINS[name](**REQUIRED.get(name, {}), **options)


ISING = random_ising(1, 4)
MODELS = {
    "ising": ISING,
    "clique": Ising.clique(4, 3, coupling=0.4, field=torch.tensor([0.3, -0.2, 0.5, 0.1])),
    "energy": Energies(random_joint(2, 3, 4)),
    "energy-of-ising": Energies(ISING.probabilities().view(2, 2, 2, 2)),
    "potts": PottsChain(-random_joint(4, 2, 3).log()).at(4, temperature=2.0),
    "masked": Conditionals(random_joint(3, 2, 4)),
}


def model_for(chain, name):
    """Return the model, with the chain rule if the chain draws blocks of a masked oracle."""
    model = MODELS[name]
    sizes = getattr(chain, "block_size", None) or getattr(chain, "blocks", None)
    return ChainRule(model) if name == "masked" and sizes else model


def target(chain, name):
    model = MODELS[name]
    if isinstance(chain, MaskedMetropolis):
        states = enumerate_sequences(model.vocab_size, 4)
        return (-chain.energy(model, states)).softmax(0)
    return model.probabilities()


@pytest.mark.parametrize("name", MODELS)
def test_the_target_is_invariant(chain, name):
    model = model_for(chain, name)
    if isinstance(chain, IndependentParallel):
        assert distributions.stationarity_error(chain, model, target=target(chain, name)) > 1e-4
    else:
        distributions.check_invariance(chain, model, target=target(chain, name), tolerance=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_the_transitions_are_probabilities(chain, name):
    distributions.check_transitions(chain, model_for(chain, name))


def test_an_energy_and_its_enumeration_are_the_same_model(chain):
    """The conditionals and block draws of the Ising model equal those enumerated from its energies."""
    own = transition_matrix(chain, MODELS["ising"])
    listed = transition_matrix(chain, MODELS["energy-of-ising"])
    torch.testing.assert_close(own, listed, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "distribution",
    [
        distributions.check_independence,
        distributions.check_stopping,
        distributions.check_repeatability,
        distributions.check_samples,
        distributions.check_trace,
        distributions.check_frequencies,
    ],
    ids=lambda distribution: distribution.__name__.removeprefix("check_"),
)
def test_copies_run_as_independent_chains(chain, distribution):
    """This holds even if a fixed order of Metropolis is not ergodic on the model."""
    distribution(chain, ISING)


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
