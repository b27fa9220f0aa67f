"""Lookup tables of the conditional distributions of single sites given their neighbors.

Compiled Gibbs sweeps run on every model that is `Tabulated`.
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
"""Maximum number of table entries (64 MiB). Larger tables do not fit into the cache."""
ALIAS_BITS = 5
COIN_BITS = 32 - ALIAS_BITS


@runtime_checkable
class Tabulated(Protocol):
    """Protocol of a model whose conditional distribution of each site, given its neighbors, can be stored in tables."""

    @property
    def vocab_size(self) -> int:
        """Number of values of a site, at most 32."""
        ...

    @property
    def sites(self) -> int:
        """Number N of sites."""
        ...

    @property
    def device(self) -> torch.device | None:
        """Default device of chains on this model. None is the CPU."""
        ...

    def site_tables(self) -> "SiteTables":
        """Return the conditional distributions of all sites.

        Raises:
            InputError: If the tables have more than `MAX_ENTRIES` entries.
        """
        ...


@dataclass(frozen=True)
class SiteTables:
    """Conditional distribution of each site of a model given its neighbors, as lookup tables.

    All distributions are stored in one array. The distribution of site i starts at entry `offsets[i]` + sum
    over k of `strides[i, k]` x_(neighbours[i, k]), where x_j is the token of site j. With two tokens, it is
    one entry, the probability of token 1 in units of 2^-32. With more tokens, it is an alias table with one
    entry per token (see `make_alias_entries`).

    Args:
        neighbours: Neighbors (N, D) int64 of each site, where D is the maximum number of neighbors.
        strides: Strides (N, D) uint32 of the neighbors in `entries`, zero for padding.
        offsets: Index (N,) uint32 in `entries` of the first entry of each site.
        entries: Table entries uint32 of all distributions.
        vocab_size: Number V of tokens, at most 32.
        device: Default device of Markov chains on this model. None is the CPU.
    """

    neighbours: NDArray[np.int64]
    strides: NDArray[np.uint32]
    offsets: NDArray[np.uint32]
    entries: NDArray[np.uint32]
    vocab_size: int
    device: torch.device | None = None

    def __post_init__(self) -> None:
        """Check that every index is in range.

        Raises:
            InputError: If an array has the wrong type or shape, or a neighbor, an entry or an alias is out of range.
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
        size = 1 if vocab == 2 else vocab
        end = self.offsets.astype(np.int64) + self.strides.sum(1, dtype=np.int64) * (vocab - 1) + size
        if self.sites and int(end.max()) > len(self.entries):
            hint = f"give at least {int(end.max())} entries, as many as the offsets and strides address"
            raise InputError("entries", len(self.entries), hint)
        if vocab > 2 and int((aliases := self.entries & np.uint32(2**ALIAS_BITS - 1)).max()) >= vocab:
            raise InputError("entries", int(aliases.max()), f"use aliases below vocab_size={vocab}")

    @property
    def sites(self) -> int:
        """Number N of sites."""
        return len(self.offsets)

    def site_tables(self) -> "SiteTables":
        """Return the tables themselves."""
        return self


def require_tabulated(model: object) -> Tabulated:
    """Return a model, or raise `InputError` if it has no lookup tables of its conditional distributions.

    Args:
        model: Model to check.

    Raises:
        InputError: If the model is not `Tabulated`.
    """
    if not isinstance(model, Tabulated):
        hint = (
            "give an Ising model, a `PottsChain.at(length, temperature)`, or `window_tables(energy, sites)`"
        )
        raise InputError("model", type(model).__name__, hint)
    return model


def validate_start(field: str, tokens: Tensor, sites: int, vocab: int, chains: int | None = None) -> Tensor:
    """Convert the initial tokens of Markov chains to int64, and raise `InputError` if they are not valid.

    Args:
        field: Name of the argument for error messages.
        tokens: Initial tokens (chains, N).
        sites: Number N of sites.
        vocab: Number of tokens.
        chains: Required number of chains (default: any).

    Returns:
        Tokens (chains, N) int64.

    Raises:
        InputError: If the shape is wrong, there are no chains, or a token is out of range.
    """
    hint = f"give token ids of shape ({'chains' if chains is None else chains}, {sites})"
    range_hint = f"use tokens below {vocab}"
    start = index_tensor(field, tokens, (chains, sites), vocab, shape_hint=hint, range_hint=range_hint)
    if not len(start):
        raise InputError(field, tuple(start.shape), hint)
    return start


def probability_thresholds(up: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Convert probabilities to integers that are compared with random numbers of 32 bits.

    Args:
        up: Probabilities float64 of any shape.

    Returns:
        Integers uint32 of the same shape, in units of 2^-32.
    """
    return np.minimum(np.rint(np.ldexp(up, 32)), 2**32 - 1).astype(np.uint32)


def make_alias_entries(distribution: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Build alias tables with entries of 32 bits, for distributions of more than two tokens.

    The upper 27 bits of an entry are the threshold, and the lower 5 bits are the alias. To sample a token, choose the
    entry of a random token. The result is this token if a random number of 27 bits is below the threshold, and
    otherwise the alias.

    Args:
        distribution: Probabilities (n, V), one distribution per row.

    Returns:
        Entries (n * V,) uint32.
    """
    return alias_table(distribution, COIN_BITS, ALIAS_BITS).astype(np.uint32).ravel()
