"""Tests of Potts models on a torus: Ising conditionals for two values, and the distribution of samples for three."""

import math

import numpy as np
import pytest

from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.samplers.chains.simulation.sweeps import run_sweeps
from trialogue_lab.data.potts_grid import potts_grid


def test_two_values_agree_with_ising_spins_of_half_the_coupling() -> None:
    tables = potts_grid(3, 4, 2, 0.7)
    for number, neighbours in enumerate(enumerate_sequences(2, 4).tolist()):
        field = 0.35 * sum(2 * token - 1 for token in neighbours)
        up = 1 / (1 + math.exp(-2 * field))
        place = int(np.dot(tables.strides[0], neighbours))
        assert place == number
        assert tables.entries[place] / 2**32 == pytest.approx(up, abs=1e-9)


def test_neighbours_are_adjacent_on_the_torus() -> None:
    tables = potts_grid(3, 4, 3, 0.5)
    assert sorted(tables.neighbours[0].tolist()) == [1, 3, 4, 8]
    assert sorted(tables.neighbours[6].tolist()) == [2, 5, 7, 10]


def equal_pairs(coupling: float, sampled_coupling: float | None = None) -> tuple[float, float]:
    """Return the sampled and the exact mean number of equal neighbours on a 3 x 3 torus with three values."""
    states = enumerate_sequences(3, 9).view(-1, 3, 3)
    equal = sum((states == states.roll(1, axis)).sum((1, 2)) for axis in (1, 2)).double()
    distribution = (coupling * equal).softmax(0)
    samples = run_sweeps(
        potts_grid(3, 3, 3, sampled_coupling or coupling), sweeps=30, chains=8000, seed=1
    ).view(-1, 3, 3)
    sampled_pairs = sum((samples == samples.roll(1, axis)).sum((1, 2)) for axis in (1, 2)).double()
    return float(sampled_pairs.mean()), float(distribution @ equal)


def test_sweeps_have_the_exact_distribution() -> None:
    found, exact = equal_pairs(0.6)
    assert found == pytest.approx(exact, abs=0.15)
    found, exact = equal_pairs(0.6, sampled_coupling=0.7)
    assert found != pytest.approx(exact, abs=0.15)


def test_tables_that_are_too_large_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^vocab_size=30: the tables for four neighbors would be too large"):
        potts_grid(3, 3, 30, 1.0)
