"""Ising models on a square grid."""

import torch

from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue.validation import Count, Finite, validated

MAX_SITES = 2**14
"""Maximum number of spins. The coupling matrix of 2^14 spins takes 2 GiB."""


@validated
def ising_grid(
    rows: Count, columns: Count, coupling: Finite, *, field: Finite = 0.0, periodic: bool = True
) -> Ising:
    """Create an Ising model whose spins are coupled to their nearest neighbors on a square grid.

    The probability p(x) of spins x_i = ±1 is proportional to exp(coupling * sum over neighbors of x_i x_j + field * sum
    of x_i). The site in row r and column c has the index r * `columns` + c. Compiled sweeps, including multispin
    sweeps, can run on the model, because all couplings are equal. The coupling matrix has N^2 entries for N sites.

    Args:
        rows: Number of rows.
        columns: Number of columns.
        coupling: Coupling J of each pair of neighbors, divided by the temperature.
        field: Field h on every spin, divided by the temperature (default: 0).
        periodic: Whether the grid is a torus (default). A single periodic row is a ring. A single row that is not
            periodic is an open chain.

    Raises:
        InputError: If there are more than `MAX_SITES` spins, a periodic side is 2 (the two sites would be neighbors
            twice), or a number is invalid.
    """
    sides = (rows, columns)
    if rows * columns > MAX_SITES:
        hint = f"use at most {MAX_SITES} spins, because the coupling matrix of {rows * columns} is too large"
        raise InputError("rows", rows, hint)
    site = torch.arange(rows * columns).view(sides)
    matrix = torch.zeros(rows * columns, rows * columns, dtype=torch.float64)
    for axis, (name, side) in enumerate(zip(("rows", "columns"), sides, strict=True)):
        if periodic and side == 2:
            raise InputError(name, side, "use 1, at least 3, or periodic=False")
        bonds = side if periodic and side > 1 else side - 1
        first = site.narrow(axis, 0, bonds).flatten()
        second = site.roll(-1, axis).narrow(axis, 0, bonds).flatten()
        matrix[first, second] = matrix[second, first] = coupling
    return Ising(matrix, torch.full((rows * columns,), field, dtype=torch.float64))
