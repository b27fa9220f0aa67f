"""Conditional laws as tables: what a site's neighbours show is one number, and that number finds the site's law.

A model that can say its conditionals so is `Tabulated`, and compiled sweeps run on it. Those of Ising models count the
spins up among neighbours of equal coupling, so that a site of d equal couplings has d + 1 laws and not 2^d; those of
windowed energies read the tokens on both sides as one number in base V.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import whole_tensor
from trialogue.data.alias import alias_table
from trialogue.errors import InputError

MAX_ENTRIES = 2**24
"""Larger tables would be read from main memory: 2^24 entries take 64 MB."""
ALIAS_BITS = 5
COIN_BITS = 32 - ALIAS_BITS


@runtime_checkable
class Tabulated(Protocol):
    """A model whose sites have conditional laws that fit into tables."""

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
        """The conditional laws of every site; raises `InputError` where there would be more than `MAX_ENTRIES`."""
        ...


@dataclass(frozen=True)
class SiteTables:
    """The conditional laws of every site of a model, found by what the site's neighbours show.

    The law of site i is in `entries` from `offsets[i]` + sum over k of `strides[i, k]` x_(neighbours[i, k]) on.
    `neighbours`, `strides` (N, D) are padded with strides of zero. For two values an entry (uint32) is P(token 1) in
    units of 2^-32; for more, a law takes V packed entries: an alias table (Walker 1977) whose column c keeps c if a
    coin of 27 bits is below the upper 27 bits of its entry, and else gives the alias in its lower 5 bits.
    """

    neighbours: NDArray[np.int64]
    strides: NDArray[np.uint32]
    offsets: NDArray[np.uint32]
    entries: NDArray[np.uint32]
    vocab_size: int
    device: torch.device | None = None

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
        mend = (
            "give an Ising model, a `PottsChain.at(length, temperature)`, or `window_tables(energy, sites)`"
        )
        raise InputError("model", type(model).__name__, mend)
    return model


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


def thresholds(up: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Probabilities in units of 2^-32: a number of 32 bits is below with that probability, to within 2^-32."""
    return np.minimum(np.rint(np.ldexp(up, 32)), 2**32 - 1).astype(np.uint32)


def packed_alias(law: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Alias tables (laws * V,) uint32 of laws (laws, V): a threshold of 27 bits above an alias of 5."""
    return alias_table(law, COIN_BITS, ALIAS_BITS).astype(np.uint32).ravel()
