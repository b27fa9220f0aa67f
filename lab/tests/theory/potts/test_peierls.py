"""Tests of the Peierls argument of Theorem 2.1 and its form for the Ising model against the exact solution."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from trialogue.data.ising.grid import ising_grid
from trialogue_lab.theory.potts import peierls

TEMPERATURES = np.linspace(0.1, 4.0, 79)


def test_temperatures_agree_with_published_values():
    assert peierls.peierls_temperature(2.0) == pytest.approx(1.82, abs=5e-3)
    assert peierls.critical_temperature() == pytest.approx(2.269, abs=5e-4)
    assert peierls.critical_temperature(2.5) == pytest.approx(2.5 * peierls.critical_temperature())


@pytest.mark.parametrize("patterns", [2, 5])
def test_free_energy_of_walls_grows_with_size_only_below_the_peierls_temperature(patterns):
    at = peierls.peierls_temperature(2.0)
    below = [
        peierls.peierls_free_energy_bound(size, 2.0, 0.95 * at, patterns) for size in (10**3, 10**4, 10**5)
    ]
    above = [peierls.peierls_free_energy_bound(size, 2.0, at, patterns) for size in (10**3, 10**4, 10**5)]
    assert below[0] > 0
    assert all(first < second for first, second in pairwise(below))
    assert all(first > second for first, second in pairwise(above))


def test_magnetisation_bound_agrees_with_the_sum_over_walls():
    def sum_over_walls(temperature):
        walls = (P / 6 * math.exp(P * (math.log(3) - 2 / temperature)) for P in range(4, 4000, 2))
        return max(-1.0, 1 - 2 * sum(walls))

    for temperature in (0.3, 0.9, 1.3, 1.5, 1.7):
        assert peierls.peierls_magnetisation_bound(temperature) == pytest.approx(
            sum_over_walls(temperature), abs=1e-12
        )
    assert peierls.peierls_magnetisation_bound(1.38) > 0 > peierls.peierls_magnetisation_bound(1.39)


def test_exact_magnetisation_is_between_the_bound_and_one():
    exact = [peierls.onsager_magnetisation(temperature) for temperature in TEMPERATURES]
    bound = [peierls.peierls_magnetisation_bound(temperature) for temperature in TEMPERATURES]
    assert all(low <= value <= 1 for low, value in zip(bound, exact, strict=True))
    assert all(first >= second for first, second in pairwise(exact))
    at = peierls.critical_temperature()
    assert peierls.onsager_magnetisation(at) == 0.0 < peierls.onsager_magnetisation(at * (1 - 1e-9))
    assert peierls.onsager_magnetisation(1e-3) == 1.0
    # Doubling the coupling halves the temperature. The bound would not hold for J instead of 2 J.
    assert peierls.onsager_magnetisation(2.0, 2.0) == peierls.onsager_magnetisation(1.0)


def test_small_grid_with_fixed_border_agrees_with_onsager():
    """The 4 x 4 grid is inside a border of spins that are fixed up."""
    temperature, side = 0.9, 4
    grid = ising_grid(side, side, 1 / temperature, periodic=False)
    missing = 4 - (grid.coupling > 0).sum(1)
    grid.field = grid.field + missing / temperature
    spins = 2.0 * grid.states().double() - 1
    middle = spins[:, side + 1]
    probabilities = (-grid.energy(grid.states())).softmax(0)
    magnetisation = float(probabilities @ middle)
    assert magnetisation >= peierls.peierls_magnetisation_bound(temperature)
    assert magnetisation == pytest.approx(peierls.onsager_magnetisation(temperature), abs=1e-5)
    assert torch.isfinite(probabilities).all()
