"""Test the bonds of Ising grids and their exactly known thermodynamics."""

import math

import pytest

from refusals import expect_error
from trialogue.data.ising.grid import ising_grid


def neighbours(rows, columns, periodic):
    """Return the pairs of sites that share a bond."""
    pairs = set()
    for row in range(rows):
        for column in range(columns):
            for down, right in ((0, 1), (1, 0)):
                other = (row + down, column + right)
                if periodic:
                    other = (other[0] % rows, other[1] % columns)
                if other != (row, column) and other[0] < rows and other[1] < columns:
                    pairs.add(frozenset((row * columns + column, other[0] * columns + other[1])))
    return pairs


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("sides", [(1, 1), (1, 5), (5, 1), (3, 3), (3, 4), (5, 3)])
def test_couplings_are_the_bonds_of_the_grid(sides, periodic):
    model = ising_grid(*sides, 0.7, periodic=periodic)
    bonds = {frozenset(pair) for pair in model.coupling.nonzero().tolist()}
    assert bonds == neighbours(*sides, periodic)
    assert set(model.coupling[model.coupling != 0].tolist()) <= {0.7}


def test_single_row_is_a_ring():
    coupling, sites = 0.4, 7
    exact = math.log((2 * math.cosh(coupling)) ** sites + (2 * math.sinh(coupling)) ** sites)
    assert ising_grid(1, sites, coupling).log_partition() == pytest.approx(exact, abs=1e-12)
    chain = math.log(2) + (sites - 1) * math.log(2 * math.cosh(coupling))
    assert ising_grid(sites, 1, coupling, periodic=False).log_partition() == pytest.approx(chain, abs=1e-12)


def test_a_field_acts_on_every_site():
    assert ising_grid(2, 3, 0.0, field=0.3, periodic=False).log_partition() == pytest.approx(
        6 * math.log(2 * math.cosh(0.3)), abs=1e-12
    )


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ((0, 3, 1.0), "rows"),
        ((3, 2, 1.0), "columns"),
        ((2, 3, 1.0), "rows"),
        ((3, 3.0, 1.0), "columns"),
        ((129, 128, 1.0), "rows"),
        ((3, 3, math.nan), "coupling"),
    ],
)
def test_invalid_grids_are_rejected(given, field):
    expect_error(f"^{field}=", ising_grid, *given)
    expect_error(r"^field=", ising_grid, 3, 3, 1.0, field=math.inf)
