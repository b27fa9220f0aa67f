"""Errors of one line with field, value and hint for invalid numbers and objects in samplers, chains and verifiers."""

import math
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import torch

from contract.test_chains import REQUIRED
from refusals import expect_error
from trialogue.data import Ising, Table, window_tables
from trialogue.models.networks.probe import Probe
from trialogue.samplers import (
    CHAINS,
    SAMPLERS,
    Ancestral,
    Backtracking,
    BestOfN,
    BlockBestOfN,
    BlockGibbs,
    BlockValueGuided,
    Gibbs,
    MaskedMetropolis,
    OutcomeRejection,
    SequentialMonteCarlo,
    StationaryValueGuided,
    TokenwiseRejection,
    ValueGuided,
    effective_sample_size,
    generate,
    hitting_times,
    resampled,
    run_sweeps,
    truncated,
)
from trialogue.samplers.chains.refinement import Refinement
from trialogue.samplers.chains.simulation.chromatic import Chromatic
from trialogue.samplers.chains.simulation.heat_bath import HeatBath
from trialogue.samplers.chains.simulation.multispin import Multispin
from trialogue.samplers.exact import (
    chain_transitions,
    ergodicity,
    exact_distribution,
    target_distribution,
    transition_matrix,
)
from trialogue.verifiers import FunctionVerifier, ProbeVerifier, RandomVerifier, Threshold

COINS = Table([[0.25, 0.25], [0.25, 0.25]])
SPINS = Ising(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.zeros(2))
START = torch.zeros(2, 2, dtype=torch.int64)
ANY = FunctionVerifier(lambda prefix: 1.0)

OUT_OF_RANGE = [
    (BestOfN, "candidates", 0),
    (BestOfN, "candidates", 10**11),
    (BlockBestOfN, "candidates", 0),
    (BlockBestOfN, "block_tokens", 0),
    (BlockBestOfN, "min_tokens", 0),
    (BlockBestOfN, "block_delimiter", ""),
    (BlockBestOfN, "delimiters", (-1,)),
    (BlockValueGuided, "candidates", 0),
    (BlockValueGuided, "block_tokens", 0),
    (Backtracking, "quota", -1),
    (Backtracking, "stride", 0),
    (SequentialMonteCarlo, "particles", 0),
    (SequentialMonteCarlo, "particles", 10**6),
    (SequentialMonteCarlo, "ess_threshold", 1.5),
    (ValueGuided, "candidates", 0),
    (ValueGuided, "nucleus", 0.0),
    (ValueGuided, "momentum", 2.0),
    (StationaryValueGuided, "steps", 0),
    (StationaryValueGuided, "steps", 10**11),
    (StationaryValueGuided, "tries", 0),
    (OutcomeRejection, "most", 0.0),
    (TokenwiseRejection, "max_rejections", 0),
    (BlockGibbs, "block_size", 0),
    (MaskedMetropolis, "bodies", 0),
    (Refinement, "steps", 0),
]


def test_every_field_of_samplers_and_chains_is_validated():
    """Try an object of the wrong type for each field, and the first value out of range."""
    kinds = [*SAMPLERS.values(), *CHAINS.values()]
    untyped = [
        (kind, field.name, object())
        for kind in kinds
        for field in fields(kind)
        if field.name != "distribution"  # functions are checked when they are called
    ]
    required = {CHAINS[name]: given for name, given in REQUIRED.items()}
    for kind, field, value in untyped + OUT_OF_RANGE:
        error = expect_error("", kind, **{**required.get(kind, {}), field: value})
        assert error.field == field, (kind, field, value)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: BlockBestOfN(delimiters=(0,), block_tokens=2), "block_tokens=2: leave it out"),
    (lambda: BlockBestOfN(block_delimiter="a", block_tokens=1), "block_delimiter='a': leave it out"),
    (lambda: BlockBestOfN(block_delimiter="a", delimiters=(0,)), "block_delimiter='a': leave it out"),
    (
        lambda: Backtracking(argmax_redo=False, redo="erased"),
        "redo='erased': leave it out with argmax_redo=False",
    ),
    *[
        (lambda given=given: truncated(COINS, **given), f"{next(iter(given))}=")
        for given in [
            {"top_k": 1.5},
            {"top_k": 0},
            {"temperature": "1"},
            {"temperature": True},
            {"temperature": -1.0},
            {"temperature": math.inf},
            {"temperature": math.nan},
            {"top_p": None},
            {"top_p": 1.5},
            {"top_p": 0},
            {"top_p": math.nan},
            {"min_p": 1.1},
        ]
    ],
    (lambda: generate(None), "oracle='NoneType': give an object with vocab_size"),
    (lambda: truncated(None), "oracle='NoneType': give an object with vocab_size"),
    (lambda: generate(COINS, sampler="rejection"), "sampler='rejection': give an instance"),
    (lambda: exact_distribution(Ancestral(), COINS, prompt="01"), "prompt='01': give a sequence"),
    (lambda: exact_distribution(Ancestral(), COINS, prompt=(0.5,)), r"prompt=\[0.5\]: give a sequence"),
    (lambda: exact_distribution(Ancestral(), COINS, prompt=None), "prompt=None: give a sequence"),
    (lambda: exact_distribution("ancestral", COINS), "sampler='ancestral': give an instance"),
    (lambda: target_distribution(COINS, lambda prefix: 1.0, prompt="01"), "prompt='01': give a sequence"),
    (lambda: transition_matrix("gibbs", SPINS), "sampler='gibbs': give a chain"),
    (lambda: chain_transitions(None, SPINS), "chain=None: give a chain"),
    (lambda: chain_transitions(Gibbs(), SPINS, device="nope"), "device='nope': it cannot be used here"),
    (lambda: ergodicity([[1j, 0], [0, 1]]), "matrix=.*: give real numbers"),
    (lambda: ergodicity(torch.full((2, 2), math.nan)), "matrix=.*: give a square matrix of probabilities"),
    (lambda: resampled(None), "samples='NoneType': give Samples"),
    (lambda: effective_sample_size(None), "log_weights=None: give logarithms of weights"),
    (
        lambda: hitting_times(Gibbs(), SPINS, start=START, target=None, budget=1),
        "target=None: give a function",
    ),
    (lambda: run_sweeps(SPINS, chains=1, sweeps=1, device="nope"), "device='nope': it cannot be used here"),
    (lambda: run_sweeps(SPINS, start="ab", sweeps=1), "start='ab': give token ids"),
    (lambda: window_tables(None, 4), "energy=None: give W axes"),
    *[
        (call, message)
        for kind in (HeatBath, Multispin, Chromatic)
        for call, message in [
            (lambda kind=kind: kind(SPINS, -1, 0), "chains=-1: use at least 1"),
            (lambda kind=kind: kind(SPINS, 2, 0, torch.tensor([[0, 5], [0, 0]])), "tokens=5: use tokens"),
            (lambda kind=kind: kind(SPINS, 2, 0).advance(1.5), "sweeps=1.5: use "),
        ]
    ],
    (lambda: FunctionVerifier(None), "function=None: give a function"),
    (lambda: Threshold(ANY, "0.5"), "threshold='0.5': use a number"),
    (lambda: RandomVerifier(True), "seed=True: use an integer"),
    (lambda: ProbeVerifier(Probe(4), layer=0.5), "layer=0.5: use "),
]


def test_invalid_input_is_reported_in_one_line():
    for call, message in CALLS:
        expect_error(f"^{message}", call)


def test_numpy_numbers_are_accepted():
    sampler = Backtracking(quota=np.int64(1), stride=np.int8(2))
    drawn = generate(
        truncated(COINS, temperature=np.float32(0.5), top_k=np.int64(2)),
        [np.array([0]), torch.tensor([1])],
        sampler=sampler,
        verifier=ANY,
        num_samples=np.int64(2),
        sample_ids=np.arange(4),
    )
    assert len(drawn.sequences()) == 4
    assert exact_distribution(Ancestral(), COINS, prompt=torch.tensor([1])).probabilities.keys() == {
        (1, 0),
        (1, 1),
    }
