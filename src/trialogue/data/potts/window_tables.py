"""Lookup tables of the conditional distributions of a Potts chain, for compiled Gibbs sweeps."""

from collections.abc import Hashable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.data.site_tables import (
    ALIAS_BITS,
    MAX_ENTRIES,
    SiteTables,
    make_alias_entries,
    probability_thresholds,
)
from trialogue.errors import InputError
from trialogue.validation import check, integer_range, validated


@validated
def window_tables(energy: Tensor, sites: int, *, periodic: bool = False) -> SiteTables:
    """Tabulate the conditional distributions of the sites of a chain whose energy is a sum over windows.

    A window is a run of W consecutive sites. The distribution of a site depends on up to W - 1 neighbors on
    each side. The table has one distribution for each combination of their tokens. Each probability has an
    absolute error of at most 2^-26.

    Args:
        energy: Energy of each window of W consecutive sites, as a tensor (V, ..., V) with W axes. It is
            already divided by the temperature.
        sites: Number N of sites, at least W, or at least 2 W - 1 for a periodic chain.
        periodic: Whether the chain is a ring, so that windows continue from the last site to the first
            (default: open ends).

    Returns:
        Tables of all sites, on which compiled Gibbs sweeps run.

    Raises:
        InputError: If an energy is not finite, the shape is wrong, there are too few sites, or the tables
            have more than `MAX_ENTRIES` entries.
    """
    hint = f"give W axes of one size V, from 2 to {2**ALIAS_BITS}"
    energy = real_tensor("energy", energy, hint)
    width, vocab = energy.ndim, energy.shape[0] if energy.ndim else 0
    if width < 1 or set(energy.shape) != {vocab} or not 2 <= vocab <= 2**ALIAS_BITS:
        raise InputError("energy", tuple(energy.shape), hint)
    # Each site is in up to `width` windows, and the sum of their energies must be finite.
    if not bool(torch.isfinite(width * energy).all()):
        worst = float(energy[~torch.isfinite(width * energy)][0])
        raise InputError("energy", worst, "give finite energies whose sums are finite")
    check("sites", sites, integer_range(2 * width - 1 if periodic else width))
    # The tables of the sites near the ends are together smaller than one table of a site in the middle.
    span = min(sites, 2 * width - 1)
    if vocab**span > MAX_ENTRIES:
        raise InputError(
            "energy",
            tuple(energy.shape),
            f"use smaller windows, because the tables would have {vocab}^{span} entries (at most {MAX_ENTRIES})",
        )
    neighbours = np.repeat(np.arange(sites)[:, None], 2 * width - 2, 1)
    strides, offsets = np.zeros(neighbours.shape, np.uint32), np.empty(sites, np.uint32)
    tables: list[NDArray[np.uint32]] = []
    first_entry: dict[Hashable, int] = {}
    size = 0
    for site in range(sites):
        left = width - 1 if periodic else min(site, width - 1)
        right = width - 1 if periodic else min(sites - 1 - site, width - 1)
        if (left, right) not in first_entry:
            first_entry[left, right] = size
            tables.append(_window_table(energy, left, right))
            size += len(tables[-1])
        shifts = [shift for shift in range(-left, right + 1) if shift]
        neighbours[site, : len(shifts)] = [(site + shift) % sites for shift in shifts]
        strides[site, : len(shifts)] = (
            vocab ** np.arange(len(shifts), 0, -1) if vocab > 2 else (2 ** np.arange(len(shifts) - 1, -1, -1))
        )
        offsets[site] = first_entry[left, right]
    return SiteTables(neighbours, strides, offsets, np.concatenate(tables), vocab)


def _window_table(energy: Tensor, left: int, right: int) -> NDArray[np.uint32]:
    """Return the table of a site with `left` and `right` neighbors, ordered by the tokens of the neighbors."""
    width, vocab = energy.ndim, energy.shape[0]
    total = torch.zeros([vocab] * (left + 1 + right), dtype=torch.float64)
    for first in range(left + 1 + right - width + 1):
        if first <= left < first + width:
            after = left + 1 + right - width - first
            total += energy.view([1] * first + [vocab] * width + [1] * after)
    distribution = (-total.movedim(left, -1).reshape(-1, vocab)).softmax(1).numpy()
    if vocab == 2:
        return probability_thresholds(distribution[:, 1])
    return make_alias_entries(distribution)
