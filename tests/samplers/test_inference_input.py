"""Errors of one line with field, value and hint for invalid numbers and objects in samplers, chains and verifiers."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import get_type_hints

import numpy as np
import pytest
import torch

from contract.test_chains import REQUIRED
from limited_arguments import excluded_values
from trialogue.data import Ising, Table, window_tables
from trialogue.errors import InputError
from trialogue.samplers import (
    CHAINS,
    SAMPLERS,
    Ancestral,
    Backtracking,
    BlockBestOfN,
    Gibbs,
    effective_sample_size,
    generate,
    resampled,
    run_sweeps,
    truncated,
)
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
from trialogue.verifiers import FunctionVerifier, RandomVerifier

COINS = Table([[0.25, 0.25], [0.25, 0.25]])
SPINS = Ising(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.zeros(2))
START = torch.zeros(2, 2, dtype=torch.int64)
ANY = FunctionVerifier(lambda prefix: 1.0)


def test_every_field_of_samplers_and_chains_is_validated():
    """Try an object of the wrong type for each field, and values outside its bounds."""
    required = {CHAINS[name]: given for name, given in REQUIRED.items()}
    for kind in (*SAMPLERS.values(), *CHAINS.values()):
        hints = get_type_hints(kind.__init__, include_extras=True)
        for field in fields(kind):
            # Functions are checked when they are called.
            for value in excluded_values(hints[field.name]) if field.name != "distribution" else ():
                with pytest.raises(InputError) as error:
                    kind(**{**required.get(kind, {}), field.name: value})
                assert error.value.field == field.name, (kind, field.name, value)
                assert "\n" not in str(error.value)


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
    (lambda: run_sweeps(SPINS, chains=1, sweeps=1, device="nope"), "device='nope': it cannot be used here"),
    (lambda: run_sweeps(SPINS, start="ab", sweeps=1), "start='ab': give token ids"),
    (lambda: window_tables(None, 4), "energy=None: give W axes"),
    *[
        (lambda kind=kind: kind(SPINS, 2, 0, torch.tensor([[0, 5], [0, 0]])), "tokens=5: use tokens")
        for kind in (HeatBath, Multispin, Chromatic)
    ],
    (lambda: RandomVerifier(True), "seed=True: use an integer"),
]


def test_invalid_input_is_reported_in_one_line():
    for call, message in CALLS:
        with pytest.raises(InputError, match=f"^{message}") as error:
            call()
        assert "\n" not in str(error.value)


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
