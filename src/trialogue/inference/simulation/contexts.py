"""Conditional laws as tables: what a site's neighbours show is one number, and that number finds the site's law.

The context of site i is `offsets[i]` + sum over k of `strides[i, k]` x_(neighbour k). For Ising models it counts the
spins up among neighbours of equal coupling, so that a site of d equal couplings has d + 1 contexts and not 2^d; for
windowed energies it is the tokens on both sides, read as one number in base V.
"""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from trialogue.arrays import real_tensor, whole_tensor
from trialogue.data import Ising, PottsLaw
from trialogue.data.alias import alias_table
from trialogue.errors import InputError, truth_value, whole_number

MAX_ENTRIES = 2**24
"""Larger tables would be read from main memory: 2^24 entries take 64 MB."""
ALIAS_BITS = 5
COIN_BITS = 32 - ALIAS_BITS
_GIBBS = "use `run_chain(Gibbs(order='sweep'), model, ...)`"


class Contexts(NamedTuple):
    """The conditional laws of every site of a model, as tables by context.

    `neighbours`, `strides` (N, D) are padded with strides of zero. For two values `entries` (contexts,) uint32 holds
    P(token 1) in units of 2^-32; for more, `entries` holds V packed entries per context, and contexts are counted in
    entries: an alias table (Walker 1977) whose column c keeps c if a coin of 27 bits is below the upper 27 bits of its
    entry, and else gives the alias in its lower 5 bits.
    """

    neighbours: NDArray[np.int64]
    strides: NDArray[np.uint32]
    offsets: NDArray[np.uint32]
    entries: NDArray[np.uint32]
    vocab: int

    @property
    def sites(self) -> int:
        """The number of sites N."""
        return len(self.offsets)


class SiteClass(NamedTuple):
    """Sites whose conditional laws are the same function: `counts[g]` couplings of `values[g]` each, and a field."""

    values: tuple[float, ...]
    counts: tuple[int, ...]
    field: float

    @property
    def contexts(self) -> int:
        """How many contexts there are: how many neighbours of each group may be up."""
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


def neighbourhoods(model: Ising) -> Neighbourhoods:
    """Neighbours and classes of the sites of `model`."""
    coupling, fields = model.coupling.cpu().numpy(), model.field.tolist()
    width = int((coupling != 0).sum(1).max())
    neighbours = np.repeat(np.arange(model.sites)[:, None], width, 1)
    group = np.full_like(neighbours, -1)
    numbers: dict[SiteClass, int] = {}
    of_site = np.empty(model.sites, np.int64)
    for site, row in enumerate(coupling):
        near = row.nonzero()[0]
        values, which, counts = np.unique(row[near], return_inverse=True, return_counts=True)
        order = which.argsort(kind="stable")
        neighbours[site, : len(near)], group[site, : len(near)] = near[order], which[order]
        kind = SiteClass(tuple(values.tolist()), tuple(counts.tolist()), fields[site])
        of_site[site] = numbers.setdefault(kind, len(numbers))
    return Neighbourhoods(neighbours, group, of_site, list(numbers))


def contexts_of(model: Ising | PottsLaw | Contexts) -> Contexts:
    """The tables of a model that has any: an `Ising` model, a Potts chain at a length and temperature, or tables.

    Raises `InputError` for others, and for tables that are too large.
    """
    if isinstance(model, Contexts):
        return model
    if isinstance(model, Ising):
        return ising_contexts(model)
    if isinstance(model, PottsLaw):
        return window_contexts(model.energies, model.sites)
    mend = "give an Ising model, a `PottsChain.at(length, temperature)`, or `window_contexts(energy, sites)`"
    raise InputError("model", type(model).__name__, mend)


def checked_start(field: str, tokens: Tensor, sites: int, vocab: int, chains: int | None = None) -> Tensor:
    """Where chains start (chains, N) int64; raises `InputError` for what are no tokens of so many sites and values."""
    mend = f"give token ids of shape ({'chains' if chains is None else chains}, {sites})"
    start = whole_tensor(field, tokens, mend)
    if start.ndim != 2 or start.shape[1] != sites or not len(start) or chains not in (None, len(start)):
        raise InputError(field, tuple(start.shape), mend)
    wrong = start[(start < 0) | (start >= vocab)]
    if len(wrong):
        raise InputError(field, int(wrong[0]), f"use tokens below {vocab}")
    return start


def ising_contexts(model: Ising) -> Contexts:
    """The heat bath of an Ising model, each entry within 2^-32 of the exact conditional.

    Raises `InputError` where neighbours of different couplings make more than `MAX_ENTRIES` contexts.
    """
    near = neighbourhoods(model)
    sizes = [kind.contexts for kind in near.classes]
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
    return Contexts(near.neighbours, strides, first[near.of_site].astype(np.uint32), thresholds(up), 2)


def thresholds(up: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Probabilities in units of 2^-32: a number of 32 bits is below with that probability, to within 2^-32."""
    return np.minimum(np.rint(np.ldexp(up, 32)), 2**32 - 1).astype(np.uint32)


def window_contexts(energy: Tensor, sites: int, *, periodic: bool = False) -> Contexts:
    """The heat bath of a chain with p(x) ∝ exp(-sum_i energy[x_i, ..., x_(i+W-1)]), to within 2^-26 per probability.

    `energy` (V, ..., V) of W axes acts on every window of W successive sites of an open chain of N = `sites`, or of
    a ring. Raises `InputError` for energies that are not finite or not of that shape, for fewer sites than a site's
    neighbourhood on a ring or than a window, and where V^(2W-1) entries are more than `MAX_ENTRIES`.
    """
    mend = f"give W axes of one size V, from 2 to {2**ALIAS_BITS}"
    energy = real_tensor("energy", energy, mend)
    width, vocab = energy.ndim, energy.shape[0] if energy.ndim else 0
    if width < 1 or set(energy.shape) != {vocab} or not 2 <= vocab <= 2**ALIAS_BITS:
        raise InputError("energy", tuple(energy.shape), mend)
    # A site is in so many windows.
    if not bool(torch.isfinite(width * energy).all()):
        worst = float(energy[~torch.isfinite(width * energy)][0])
        raise InputError("energy", worst, "give finite energies of windows, whose sums are finite too")
    sites = whole_number("sites", sites, 2 * width - 1 if truth_value("periodic", periodic) else width)
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
    found: dict[Hashable, int] = {}
    size = 0
    for site in range(sites):
        left = width - 1 if periodic else min(site, width - 1)
        right = width - 1 if periodic else min(sites - 1 - site, width - 1)
        if (left, right) not in found:
            found[left, right] = size
            tables.append(_window_table(energy, left, right))
            size += len(tables[-1])
        beside = [offset for offset in range(-left, right + 1) if offset]
        neighbours[site, : len(beside)] = [(site + offset) % sites for offset in beside]
        strides[site, : len(beside)] = (
            vocab ** np.arange(len(beside), 0, -1) if vocab > 2 else (2 ** np.arange(len(beside) - 1, -1, -1))
        )
        offsets[site] = found[left, right]
    return Contexts(neighbours, strides, offsets, np.concatenate(tables), vocab)


def _window_table(energy: Tensor, left: int, right: int) -> NDArray[np.uint32]:
    """Entries of a site that depends on `left` and `right` sites beside it; contexts are their tokens in order."""
    width, vocab = energy.ndim, energy.shape[0]
    total = torch.zeros([vocab] * (left + 1 + right), dtype=torch.float64)
    for first in range(left + 1 + right - width + 1):
        if first <= left < first + width:
            after = left + 1 + right - width - first
            total += energy.view([1] * first + [vocab] * width + [1] * after)
    law = (-total.movedim(left, -1).reshape(-1, vocab)).softmax(1).numpy()
    if vocab == 2:
        return thresholds(law[:, 1])
    return packed_alias(law)


def packed_alias(law: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Alias tables (contexts * V,) uint32 of laws (contexts, V): a threshold of 27 bits above an alias of 5."""
    return alias_table(law, COIN_BITS, ALIAS_BITS).astype(np.uint32).ravel()
