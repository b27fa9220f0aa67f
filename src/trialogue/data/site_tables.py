"""Conditional distributions as tables: what a site's neighbours show is one number, and that number finds the site's
distribution.

A model that can say its conditionals so is `Tabulated`, and compiled sweeps run on it. Those of Ising models count the
spins up among neighbours of equal coupling, so that a site of d equal couplings has d + 1 distributions and not 2^d;
those of windowed energies read the tokens on both sides as one number in base V.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data.alias import alias_table
from trialogue.errors import InputError
from trialogue.indices import index_tensor, require_array
from trialogue.validation import check, integer_range

MAX_ENTRIES = 2**24
"""Larger tables would be read from main memory: 2^24 entries take 64 MB."""
ALIAS_BITS = 5
COIN_BITS = 32 - ALIAS_BITS


@runtime_checkable
class Tabulated(Protocol):
    """A model whose sites have conditional distributions that fit into tables."""

    @property
    def vocab_size(self) -> int:
        """Number of values of a site, at most 32."""
        ...

    @property
    def sites(self) -> int:
        """The number of sites N."""
        ...

    @property
    def device(self) -> torch.device | None:
        """Where the model lies, and its chains run unless told otherwise; None is the CPU."""
        ...

    def site_tables(self) -> "SiteTables":
        """The conditional distributions of every site; raises `InputError` where there would be more than
        `MAX_ENTRIES`.
        """
        ...


@dataclass(frozen=True)
class SiteTables:
    """The conditional distributions of every site of a model, found by what the site's neighbours show.

    The distribution of site i is in `entries` from `offsets[i]` + sum over k of `strides[i, k]` x_(neighbours[i, k])
    on. `neighbours`, `strides` (N, D) are padded with strides of zero. For two values an entry (uint32) is P(token 1)
    in units of 2^-32; for more, a distribution takes V packed entries: an alias table (Walker 1977) whose column c
    keeps c if a coin of 27 bits is below the upper 27 bits of its entry, and else gives the alias in its lower 5 bits.
    """

    neighbours: NDArray[np.int64]
    strides: NDArray[np.uint32]
    offsets: NDArray[np.uint32]
    entries: NDArray[np.uint32]
    vocab_size: int
    device: torch.device | None = None

    def __post_init__(self) -> None:
        """Check that no site looks for its distribution outside of the tables.

        Raises:
            InputError: If an array has another type or shape, or if it leads to a site, an entry or a token that does
                not exist.
        """
        vocab = check("vocab_size", self.vocab_size, integer_range(2, 2**ALIAS_BITS))
        require_array("offsets", self.offsets, np.uint32, (None,))
        require_array("neighbours", self.neighbours, np.int64, (self.sites, None))
        require_array("strides", self.strides, np.uint32, self.neighbours.shape)
        require_array("entries", self.entries, np.uint32, (None,))
        near = self.neighbours
        if near.size and not 0 <= int(near.min()) <= int(near.max()) < self.sites:
            wrong = near[(near < 0) | (near >= self.sites)]
            raise InputError("neighbours", int(wrong[0]), f"use sites from 0 to {self.sites - 1}")
        distribution = 1 if vocab == 2 else vocab
        last = (
            self.offsets.astype(np.int64) + self.strides.sum(1, dtype=np.int64) * (vocab - 1) + distribution
        )
        if self.sites and int(last.max()) > len(self.entries):
            hint = (
                f"the last distribution that offsets and strides lead to would end at entry {int(last.max())}"
            )
            raise InputError("entries", len(self.entries), hint)
        if vocab > 2 and int((aliases := self.entries & np.uint32(2**ALIAS_BITS - 1)).max()) >= vocab:
            raise InputError("entries", int(aliases.max()), f"use aliases below vocab_size={vocab}")

    @property
    def sites(self) -> int:
        """The number of sites N."""
        return len(self.offsets)

    def site_tables(self) -> "SiteTables":
        """These."""
        return self


def tabulated(model: object) -> Tabulated:
    """Return `model`; raises `InputError` unless it is `Tabulated`."""
    if not isinstance(model, Tabulated):
        hint = (
            "give an Ising model, a `PottsChain.at(length, temperature)`, or `window_tables(energy, sites)`"
        )
        raise InputError("model", type(model).__name__, hint)
    return model


def checked_start(field: str, tokens: Tensor, sites: int, vocab: int, chains: int | None = None) -> Tensor:
    """Where chains start (chains, N) int64; raises `InputError` for what are no tokens of so many sites and values."""
    hint = f"give token ids of shape ({'chains' if chains is None else chains}, {sites})"
    range_hint = f"use tokens below {vocab}"
    start = index_tensor(field, tokens, (chains, sites), vocab, shape_hint=hint, range_hint=range_hint)
    if not len(start):
        raise InputError(field, tuple(start.shape), hint)
    return start


def thresholds(up: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Probabilities in units of 2^-32: a number of 32 bits is below with that probability, to within 2^-32."""
    return np.minimum(np.rint(np.ldexp(up, 32)), 2**32 - 1).astype(np.uint32)


def packed_alias(distribution: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Alias tables (distributions * V,) uint32 of distributions (distributions, V): a threshold of 27 bits above an
    alias of 5.
    """
    return alias_table(distribution, COIN_BITS, ALIAS_BITS).astype(np.uint32).ravel()
