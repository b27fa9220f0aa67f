"""Spins on a square grid: the two-dimensional contrast to a chain, as an Ising model that every chain runs on."""

import torch

from trialogue.data.ising.model import Ising
from trialogue.errors import InputError
from trialogue.validation import Count, Finite, validated

MAX_SITES = 2**14
"""More spins are refused: the couplings of 2^14 of them take 2 GiB."""


@validated
def ising_grid(
    rows: Count, columns: Count, coupling: Finite, *, field: Finite = 0.0, periodic: bool = True
) -> Ising:
    """The Ising model whose N = `rows` * `columns` spins are coupled with their neighbours on a grid.

    Site r * `columns` + c lies in row r and column c; `coupling` is J / T and `field` h / T. A `periodic` grid closes
    to a torus; of a single row that is the ring, and not periodic the open chain. All couplings of the model are
    equal, so that compiled sweeps run on it, the multispin ones included. Their matrix has N^2 entries.

    Raises `InputError` for sides below 1, for a periodic side of 2, whose two sites would be neighbours twice, for more
    than `MAX_SITES`, and for numbers that are not finite.
    """
    sides = (rows, columns)
    if rows * columns > MAX_SITES:
        hint = (
            f"the matrix of couplings of {rows * columns} spins would not fit: use at most {MAX_SITES} spins"
        )
        raise InputError("rows", rows, hint)
    site = torch.arange(rows * columns).view(sides)
    matrix = torch.zeros(rows * columns, rows * columns, dtype=torch.float64)
    for axis, (name, side) in enumerate(zip(("rows", "columns"), sides, strict=True)):
        if periodic and side == 2:
            raise InputError(name, side, "a torus needs 1 or at least 3: use periodic=False")
        bonds = side if periodic and side > 1 else side - 1
        first = site.narrow(axis, 0, bonds).flatten()
        second = site.roll(-1, axis).narrow(axis, 0, bonds).flatten()
        matrix[first, second] = matrix[second, first] = coupling
    return Ising(matrix, torch.full((rows * columns,), field, dtype=torch.float64))
