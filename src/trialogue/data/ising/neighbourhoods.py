"""Lookup tables of the conditional distributions of an Ising model.

The distribution of a spin depends on its neighbors, the sites with a nonzero coupling to it. Neighbors with equal
couplings form a group. Only the number of up spins (+1) in each group matters.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from trialogue.data.site_tables import MAX_ENTRIES, SiteTables, probability_thresholds
from trialogue.errors import InputError

_GIBBS = "use `run_chain(Gibbs(order='sweep'), model, ...)`"


class SiteClass(NamedTuple):
    """Conditional distribution that all sites with the same couplings and field share.

    Neighbors with equal couplings form a group.

    Attributes:
        values: Distinct nonzero couplings of a site, one per group.
        counts: Number of neighbors in each group.
        field: Field on a site.
    """

    values: tuple[float, ...]
    counts: tuple[int, ...]
    field: float

    @property
    def configurations(self) -> int:
        """Number of combinations of the numbers of up spins in all groups of neighbors."""
        return int(np.prod([count + 1 for count in self.counts], dtype=object))

    def log_odds(self) -> NDArray[np.float64]:
        """Return the log-odds of spin +1 given the number of up spins in each group of neighbors.

        Returns:
            Log-odds, an array with one axis per group. The axis of a group of n neighbors has n + 1 entries.
        """
        local = np.zeros([count + 1 for count in self.counts])
        for axis, (value, count) in enumerate(zip(self.values, self.counts, strict=True)):
            shape = [-1 if other == axis else 1 for other in range(local.ndim)]
            local = local + value * (2.0 * np.arange(count + 1) - count).reshape(shape)
        return np.asarray(2 * (local + self.field))


class Neighbourhoods(NamedTuple):
    """Neighbors of all sites of an Ising model, and classes of sites with the same conditional distribution.

    A class contains the sites with the same couplings and field. D is the maximum number of neighbors of a site.

    Attributes:
        neighbours: Neighbors (N, D) of each site, sorted by coupling. Missing entries repeat the site.
        group: Index (N, D) of the coupling of each neighbor in `SiteClass.values`, or -1 for missing entries.
        of_site: Index (N,) of the class of each site.
        classes: All classes.
    """

    neighbours: NDArray[np.int64]
    group: NDArray[np.int64]
    of_site: NDArray[np.int64]
    classes: list[SiteClass]


def find_neighbourhoods(couplings: Tensor, field: Tensor) -> Neighbourhoods:
    """Find the neighbors of each site of an Ising model, and group the sites by their conditional distributions.

    Args:
        couplings: Couplings (N, N).
        field: Field (N,).

    Returns:
        Neighbors and classes of all sites.
    """
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
    """Tabulate the conditional distributions of all sites of an Ising model.

    Each probability has an absolute error of at most 2^-32. A table is indexed by the numbers of up spins among
    neighbors with equal couplings.

    Args:
        coupling: Couplings (N, N).
        field: Field (N,).

    Returns:
        Tables of all sites, on which compiled Gibbs sweeps run.

    Raises:
        InputError: If the tables have more than `MAX_ENTRIES` entries.
    """
    near = find_neighbourhoods(coupling, field)
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
    return SiteTables(near.neighbours, strides, offsets, probability_thresholds(up), 2, coupling.device)
