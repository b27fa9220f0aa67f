"""The heat bath of a chain of windows as tables by the tokens on both sides of a site."""

from collections.abc import Hashable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import real_tensor
from trialogue.data.site_tables import ALIAS_BITS, MAX_ENTRIES, SiteTables, packed_alias, thresholds
from trialogue.errors import InputError
from trialogue.validation import check, integer_range, validated


@validated
def window_tables(energy: Tensor, sites: int, *, periodic: bool = False) -> SiteTables:
    """The heat bath of a chain with p(x) ∝ exp(-sum_i energy[x_i, ..., x_(i+W-1)]), to within 2^-26 per probability.

    `energy` (V, ..., V) of W axes acts on every window of W successive sites of an open chain of N = `sites`, or of
    a ring. Raises `InputError` for energies that are not finite or not of that shape, for fewer sites than a site's
    neighbourhood on a ring or than a window, and where V^(2W-1) entries are more than `MAX_ENTRIES`.
    """
    hint = f"give W axes of one size V, from 2 to {2**ALIAS_BITS}"
    energy = real_tensor("energy", energy, hint)
    width, vocab = energy.ndim, energy.shape[0] if energy.ndim else 0
    if width < 1 or set(energy.shape) != {vocab} or not 2 <= vocab <= 2**ALIAS_BITS:
        raise InputError("energy", tuple(energy.shape), hint)
    # A site is in so many windows.
    if not bool(torch.isfinite(width * energy).all()):
        worst = float(energy[~torch.isfinite(width * energy)][0])
        raise InputError("energy", worst, "give finite energies of windows, whose sums are finite too")
    check("sites", sites, integer_range(2 * width - 1 if periodic else width))
    # Tables of the ends are smaller, in sum less than one of the middle.
    span = min(sites, 2 * width - 1)
    if vocab**span > MAX_ENTRIES:
        raise InputError(
            "energy",
            tuple(energy.shape),
            f"the conditionals would take {vocab}^{span} table entries (at most {MAX_ENTRIES}): use smaller windows",
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
        beside = [offset for offset in range(-left, right + 1) if offset]
        neighbours[site, : len(beside)] = [(site + offset) % sites for offset in beside]
        strides[site, : len(beside)] = (
            vocab ** np.arange(len(beside), 0, -1) if vocab > 2 else (2 ** np.arange(len(beside) - 1, -1, -1))
        )
        offsets[site] = first_entry[left, right]
    return SiteTables(neighbours, strides, offsets, np.concatenate(tables), vocab)


def _window_table(energy: Tensor, left: int, right: int) -> NDArray[np.uint32]:
    """Entries of a site that depends on `left` and `right` sites beside it; distributions are in the order of their
    tokens.
    """
    width, vocab = energy.ndim, energy.shape[0]
    total = torch.zeros([vocab] * (left + 1 + right), dtype=torch.float64)
    for first in range(left + 1 + right - width + 1):
        if first <= left < first + width:
            after = left + 1 + right - width - first
            total += energy.view([1] * first + [vocab] * width + [1] * after)
    distribution = (-total.movedim(left, -1).reshape(-1, vocab)).softmax(1).numpy()
    if vocab == 2:
        return thresholds(distribution[:, 1])
    return packed_alias(distribution)
