"""Order in the plane: the argument of Theorem 2.1, and what it becomes for the Ising model, beside the exact answer."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from trialogue.data.ising.grid import ising_grid
from trialogue_lab.theory.potts.peierls import (
    critical_temperature,
    onsager_magnetisation,
    peierls_free_energy_bound,
    peierls_magnetisation_bound,
    peierls_temperature,
)

TEMPERATURES = np.linspace(0.1, 4.0, 79)


def test_numbers_of_the_source():
    assert peierls_temperature(2.0) == pytest.approx(1.82, abs=5e-3)
    assert critical_temperature() == pytest.approx(2.269, abs=5e-4)
    assert critical_temperature(2.5) == pytest.approx(2.5 * critical_temperature())


@pytest.mark.parametrize("patterns", [2, 5])
def test_large_walls_are_suppressed_below_the_temperature_alone(patterns):
    at = peierls_temperature(2.0)
    below = [peierls_free_energy_bound(size, 2.0, 0.95 * at, patterns) for size in (10**3, 10**4, 10**5)]
    above = [peierls_free_energy_bound(size, 2.0, at, patterns) for size in (10**3, 10**4, 10**5)]
    assert below[0] > 0
    assert all(one < other for one, other in pairwise(below))
    assert all(one > other for one, other in pairwise(above))


def test_the_sum_over_walls_is_summed():
    def summed(temperature):
        walls = (P / 6 * math.exp(P * (math.log(3) - 2 / temperature)) for P in range(4, 4000, 2))
        return max(-1.0, 1 - 2 * sum(walls))

    for temperature in (0.3, 0.9, 1.3, 1.5, 1.7):
        assert peierls_magnetisation_bound(temperature) == pytest.approx(summed(temperature), abs=1e-12)
    assert peierls_magnetisation_bound(1.38) > 0 > peierls_magnetisation_bound(1.39)


def test_the_magnetisation_lies_between_the_bound_and_one():
    exact = [onsager_magnetisation(temperature) for temperature in TEMPERATURES]
    bound = [peierls_magnetisation_bound(temperature) for temperature in TEMPERATURES]
    assert all(low <= value <= 1 for low, value in zip(bound, exact, strict=True))
    assert all(one >= other for one, other in pairwise(exact))
    at = critical_temperature()
    assert onsager_magnetisation(at) == 0.0 < onsager_magnetisation(at * (1 - 1e-9))
    assert onsager_magnetisation(1e-3) == 1.0
    # Twice the coupling per bond is half the temperature: the document's J instead of 2 J would not be a bound of it.
    assert onsager_magnetisation(2.0, 2.0) == onsager_magnetisation(1.0)


def test_a_strip_with_its_border_held_agrees_with_onsager():
    """The middle spin of a 4 x 4 grid whose border feels a fixed row of spins up, against low-temperature walls."""
    temperature, side = 0.9, 4
    grid = ising_grid(side, side, 1 / temperature, periodic=False)
    missing = 4 - (grid.coupling > 0).sum(1)
    grid.field = grid.field + missing / temperature
    spins = 2.0 * grid.states().double() - 1
    middle = spins[:, side + 1]
    held = (-grid.energy(grid.states())).softmax(0)
    magnetisation = float(held @ middle)
    assert magnetisation >= peierls_magnetisation_bound(temperature)
    assert magnetisation == pytest.approx(onsager_magnetisation(temperature), abs=1e-5)
    assert torch.isfinite(held).all()
