"""Neighbors of the spins of an Ising model, and conditional distributions as tables indexed by counts of up spins."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from trialogue.data.site_tables import MAX_ENTRIES, SiteTables, thresholds
from trialogue.errors import InputError

_GIBBS = "use `run_chain(Gibbs(order='sweep'), model, ...)`"


class SiteClass(NamedTuple):
    """Sites with the same conditional distributions.

    Attributes:
        values: Distinct nonzero couplings of a site.
        counts: Number of neighbors for each coupling.
        field: Field on a site.
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]
    field: float

    @property
    def configurations(self) -> int:
        """Number of combinations of the counts of up spins in each group of neighbors."""
        return int(np.prod([count + 1 for count in self.counts], dtype=object))

    def log_odds(self) -> NDArray[np.float64]:
        """Return the log-odds of +1 by the number of up neighbors, with one axis per group of equal couplings."""
        local = np.zeros([count + 1 for count in self.counts])
        for axis, (value, count) in enumerate(zip(self.values, self.counts, strict=True)):
            shape = [-1 if other == axis else 1 for other in range(local.ndim)]
            local = local + value * (2.0 * np.arange(count + 1) - count).reshape(shape)
        return np.asarray(2 * (local + self.field))


class Neighbourhoods(NamedTuple):
    """Neighbors and classes of all sites of an Ising model.

    Attributes:
        neighbours: Neighbors (N, D) of each site, sorted by coupling and padded.
        group: Index (N, D) of the coupling of each neighbor in `SiteClass.values`, or -1 for padding.
        of_site: Index (N,) of the class of each site.
        classes: All classes.
    """

    neighbours: NDArray[np.int64]
    group: NDArray[np.int64]
    of_site: NDArray[np.int64]
    classes: list[SiteClass]


def neighbourhoods(couplings: Tensor, field: Tensor) -> Neighbourhoods:
    """Return the neighbors and classes of the sites of an Ising model with `couplings` (N, N) and `field` (N,)."""
    coupling, fields = couplings.cpu().numpy(), field.tolist()
    width = int((coupling != 0).sum(1).max())
    neighbours = np.repeat(np.arange(len(coupling))[:, None], width, 1)
    group = np.full_like(neighbours, -1)
    numbers: dict[SiteClass, int] = {}
    of_site = np.empty(len(coupling), np.int64)
    for site, row in enumerate(coupling):
        near = row.nonzero()[0]
        values, inverse, counts = np.unique(row[near], return_inverse=True, return_counts=True)
        order = inverse.argsort(kind="stable")
        neighbours[site, : len(near)], group[site, : len(near)] = near[order], inverse[order]
        kind = SiteClass(tuple(values.tolist()), tuple(counts.tolist()), fields[site])
        of_site[site] = numbers.setdefault(kind, len(numbers))
    return Neighbourhoods(neighbours, group, of_site, list(numbers))


def ising_tables(coupling: Tensor, field: Tensor) -> SiteTables:
    """Return the conditional distributions of an Ising model, with an absolute error of at most 2^-32.

    Args:
        coupling: Couplings (N, N).
        field: Field (N,).

    Raises:
        InputError: If the tables have more than `MAX_ENTRIES` entries.
    """
    near = neighbourhoods(coupling, field)
    sizes = [kind.configurations for kind in near.classes]
    if sum(sizes) > MAX_ENTRIES:
        groups = max(len(kind.values) for kind in near.classes)
        raise InputError(
            "coupling",
            f"{groups} different couplings of one site",
            f"{_GIBBS}, because the tables would have {sum(sizes)} entries (at most {MAX_ENTRIES})",
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
