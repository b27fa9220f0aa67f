"""Pair interactions of a chain of windows as a band matrix."""

from itertools import combinations

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array
from torch import Tensor


def coupling_strengths(energies: Tensor, windows: int) -> csr_array:
    """Norms of the fields and pair interactions of a chain of so many windows, as a sparse band matrix (L, L).

    `energies` (V, ..., V) of W axes. Terms of second and first order in the zero-sum gauge, summed over the windows
    that hold both sites before their Frobenius norm is taken.
    """
    width, length = energies.ndim, windows + energies.ndim - 1
    centred = energies - energies.mean()
    field = torch.stack([_mean_over_others(centred, (place,)) for place in range(width)])
    bands = [_norms(field, windows)]
    pairs: dict[int, list[Tensor]] = {distance: [] for distance in range(1, width)}
    for first, second in combinations(range(width), 2):
        both = _mean_over_others(centred, (first, second))
        pairs[second - first].append(both - field[first][:, None] - field[second])
    bands += [_norms(torch.stack(terms), windows) for terms in pairs.values()]
    offsets = [sign * distance for distance in range(width) for sign in ((1, -1) if distance else (1,))]
    matrix = diags_array([bands[abs(offset)] for offset in offsets], offsets=offsets, shape=(length, length))
    return csr_array(matrix)


def _mean_over_others(table: Tensor, axes: tuple[int, ...]) -> Tensor:
    others = [axis for axis in range(table.ndim) if axis not in axes]
    return table.mean(others) if others else table


def _norms(terms: Tensor, windows: int) -> np.ndarray:
    """Norms (windows + k - 1,) of sums of `terms` (k, ...): entry i sums term o for each window i - o there is."""
    places = len(terms)
    upto = torch.cat((torch.zeros_like(terms[:1]), terms.cumsum(0)))
    first = torch.arange(windows + places - 1)
    most, least = first.clamp(max=places - 1) + 1, (first - windows + 1).clamp(min=0)
    kinds, kind = torch.unique(torch.stack((most, least)), dim=1, return_inverse=True)
    norms = (upto[kinds[0]] - upto[kinds[1]]).flatten(1).norm(dim=1)
    return np.asarray(norms[kind].numpy())
