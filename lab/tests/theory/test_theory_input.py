"""Bounds and closed forms, and what measures a model: bad numbers are one line with field, value and hint."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from trialogue.data import Ising, PottsChain, Table
from trialogue.errors import InputError
from trialogue.inspection.coherence import Runs
from trialogue_lab.data.puzzles.arithmetic import SemiprimeTuples
from trialogue_lab.theory.factoring.overlap import cheating_generator, semiprime_masses
from trialogue_lab.theory.masking.block_laws import block_dynamics, block_law
from trialogue_lab.theory.masking.mixing import chi_square, dirichlet_form, mixing_time
from trialogue_lab.theory.masking.pseudolikelihood import (
    asymptotic_covariance,
)
from trialogue_lab.theory.potts.domain_walls import (
    one_wall,
    stored_sequences,
)
from trialogue_lab.theory.potts.greedy_patterns import greedy_patterns
from trialogue_lab.theory.potts.map import autoregressive_of, hamiltonian_of
from trialogue_lab.theory.potts.nearest_neighbour import NearestNeighbourPotts
from trialogue_lab.theory.potts.pattern_survival import PatternSurvival

SPINS = Ising(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.zeros(2))
PAIR = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
LAW = torch.full((4,), 0.25)
BLOCKS = block_law(2, 2, block_size=1)
MATRIX = block_dynamics(LAW, BLOCKS)
TUPLES = SemiprimeTuples(1)
RUNS = Runs(np.array([1, 2]), np.array([True, False]))
BOUND = {"sites": 2, "vocab_size": 2, "samples": 9, "masks": 1}
BOUND |= {"tensorization": 1.0, "loss": 1.0, "beta": 0.1, "cells": 1.0, "eps": 0.1, "delta": 0.1}


def looking_back(distance: int) -> Table:
    """Two tokens, the next one by the one `distance` tokens back alone."""

    def law(prefix: tuple[int, ...]) -> list[float]:
        return [0.3, 0.7] if len(prefix) >= distance and prefix[-distance] else [0.6, 0.4]

    return Table(law, 2)


CALLS: list[tuple[Callable[[], object], str]] = [
    (lambda: stored_sequences(None, 3), "chain=None: give an instance of PottsChain"),
    (lambda: one_wall(PAIR, None, 1.0), "patterns=None: give tokens"),
    (lambda: greedy_patterns(None), r"log_probs=None: use the shape \(V\^w, V\)"),
    (lambda: hamiltonian_of(looking_back(3), 1), "context=1: what stands 2 tokens further back changes"),
    (lambda: hamiltonian_of(looking_back(7), 1), "context=1: what stands 6 tokens further back changes"),
    (lambda: hamiltonian_of(looking_back(7), 0), "context=0: what stands 7 tokens further back changes"),
    (lambda: hamiltonian_of(None, 1), "oracle='NoneType': give an Autoregressive oracle"),
    (lambda: autoregressive_of(None, 4, 1.0), "chain='NoneType': give a PottsChain"),
    (lambda: autoregressive_of(PottsChain(1e308 * PAIR.double()), 4, 1.0), r"energies=1e\+308: .*overflow"),
    (lambda: NearestNeighbourPotts(2, "1", 1.0), "coupling='1': use a number"),
    (lambda: PatternSurvival([[0, 1]], 1, 0).curve(None, 3), "log_probs=None: give log-probabilities"),
    (lambda: mixing_time([[1, 2], [3]]), r"transitions=\[\[1, 2\], \[3\]\]: use a square matrix"),
    (lambda: dirichlet_form(MATRIX, None, LAW), r"f=None: use the shape \(4,\)"),
    (lambda: chi_square(LAW, None), "second=None: give a law"),
    (lambda: asymptotic_covariance(SPINS, 1, masks_per_sample="2"), "masks_per_sample='2': use a number"),
    (lambda: cheating_generator(TUPLES, None), "success=None: give a chance"),
    (
        lambda: cheating_generator(TUPLES, dict.fromkeys(semiprime_masses(TUPLES), "1")),
        "success='1': use a prob",
    ),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[message for _, message in CALLS])
def test_bad_input_is_one_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}") as error:
        call()
    assert "\n" not in str(error.value)


def test_an_oracle_is_asked_as_far_back_as_its_window_needs() -> None:
    for distance in (1, 2, 3):
        assert hamiltonian_of(looking_back(distance), distance).chain.window == distance + 1
    # Of larger vocabularies not all contexts are listed: some are drawn.
    wide = Table(lambda prefix: np.roll(np.arange(1, 31), prefix[-3] if len(prefix) > 2 else 0), 30)
    with pytest.raises(InputError, match=r"^context=1: what stands 2 tokens further back changes"):
        hamiltonian_of(wide, 1)
