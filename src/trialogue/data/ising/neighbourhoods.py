"""The neighbours of the spins of an Ising model, and its heat bath as tables by how many of them are up."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from trialogue.data.site_tables import MAX_ENTRIES, SiteTables, thresholds
from trialogue.errors import InputError

_GIBBS = "use `run_chain(Gibbs(order='sweep'), model, ...)`"


class SiteClass(NamedTuple):
    """Sites whose conditional distributions are the same function: `counts[g]` couplings of `values[g]` each, and
    a field.
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]
    field: float

    @property
    def configurations(self) -> int:
        """In how many ways neighbours can be up: as many of each group as there are."""
        return int(np.prod([count + 1 for count in self.counts], dtype=object))

    def log_odds(self) -> NDArray[np.float64]:
        """log p(+1)/p(-1) by how many neighbours are up, one axis per group of equal couplings."""
        local = np.zeros([count + 1 for count in self.counts])
        for axis, (value, count) in enumerate(zip(self.values, self.counts, strict=True)):
            shape = [-1 if other == axis else 1 for other in range(local.ndim)]
            local = local + value * (2.0 * np.arange(count + 1) - count).reshape(shape)
        return np.asarray(2 * (local + self.field))


class Neighbourhoods(NamedTuple):
    """The sites of an Ising model: `neighbours` (N, D) ordered by coupling and padded.

    `group` (N, D) numbers the equal couplings of a site, -1 where padded; site i is of class `classes[of_site[i]]`.
    """

    neighbours: NDArray[np.int64]
    group: NDArray[np.int64]
    of_site: NDArray[np.int64]
    classes: list[SiteClass]


def neighbourhoods(couplings: Tensor, field: Tensor) -> Neighbourhoods:
    """Neighbours and classes of the sites of an Ising model of `couplings` (N, N) and `field` (N,)."""
    coupling, fields = couplings.cpu().numpy(), field.tolist()
    width = int((coupling != 0).sum(1).max())
    neighbours = np.repeat(np.arange(len(coupling))[:, None], width, 1)
    group = np.full_like(neighbours, -1)
    numbers: dict[SiteClass, int] = {}
    of_site = np.empty(len(coupling), np.int64)
    for site, row in enumerate(coupling):
        near = row.nonzero()[0]
        values, which, counts = np.unique(row[near], return_inverse=True, return_counts=True)
        order = which.argsort(kind="stable")
        neighbours[site, : len(near)], group[site, : len(near)] = near[order], which[order]
        kind = SiteClass(tuple(values.tolist()), tuple(counts.tolist()), fields[site])
        of_site[site] = numbers.setdefault(kind, len(numbers))
    return Neighbourhoods(neighbours, group, of_site, list(numbers))


def ising_tables(coupling: Tensor, field: Tensor) -> SiteTables:
    """The heat bath of an Ising model of `coupling` (N, N) and `field` (N,), each entry within 2^-32 of the exact one.

    Raises `InputError` where neighbours of different couplings take more than `MAX_ENTRIES` entries.
    """
    near = neighbourhoods(coupling, field)
    sizes = [kind.configurations for kind in near.classes]
    if sum(sizes) > MAX_ENTRIES:
        groups = max(len(kind.values) for kind in near.classes)
        raise InputError(
            "coupling",
            f"{groups} different couplings of one site",
            f"the conditionals would take {sum(sizes)} table entries (at most {MAX_ENTRIES}): {_GIBBS}",
        )
    strides = np.zeros(near.neighbours.shape, np.uint32)
    first = np.cumsum([0, *sizes[:-1]])
    for number, kind in enumerate(near.classes):
        steps = np.cumprod([1, *(count + 1 for count in kind.counts[:0:-1])])[::-1]
        members = near.of_site == number
        group = near.group[members]
        strides[members] = np.where(group >= 0, steps[group] if kind.counts else 0, 0)
    up = np.concatenate([expit(kind.log_odds()).ravel() for kind in near.classes])
    offsets = first[near.of_site].astype(np.uint32)
    return SiteTables(near.neighbours, strides, offsets, thresholds(up), 2, coupling.device)
