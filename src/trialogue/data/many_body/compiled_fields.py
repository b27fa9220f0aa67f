"""Base class of the compiled kernels of many-body distributions."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import over_rows

Numbers = NDArray[np.float64]
Tokens = NDArray[np.int64]

ENTRIES = 2**24
"""Maximum number of entries of the tables (128 MiB)."""


class CompiledFields(ABC):
    """Compiled evaluation of the fields of single sites, and heat-bath sweeps.

    The field of a site is the contribution to -E for each of its values.

    Args:
        fill: Compiled function with arguments (first, last, tokens, sites, *arrays, fields).
        sweep: Compiled function with arguments (first, last, tokens, keys, counters, *arrays, sweeps).
        arrays: Tables for both functions.
        vocab: Number V of values of a site.
        width: Approximate number of operations of an update.
    """

    def __init__(
        self,
        fill: Callable[..., None],
        sweep: Callable[..., None],
        arrays: tuple[Any, ...],
        vocab: int,
        width: int,
    ) -> None:
        self._fill, self._sweep, self._arrays = fill, sweep, arrays
        self._vocab, self._width = vocab, width

    @staticmethod
    @abstractmethod
    def nanoseconds(positions: Numbers, vectors: Numbers, order: int) -> float:
        """Return the approximate time of an update, or infinity if the tables would be too large."""

    def fields(self, tokens: Tokens, sites: Tokens) -> Numbers:
        """Return the fields (rows, m, V) at the `sites` (rows, m) of `tokens` (rows, L)."""
        fields = np.empty((*sites.shape, self._vocab))
        over_rows(self._fill, len(tokens), self._width * sites.shape[1], tokens, sites, *self._arrays, fields)
        return fields

    def sweep(
        self, tokens: Tokens, keys: NDArray[np.int64], counters: NDArray[np.int64], sweeps: int
    ) -> None:
        """Sample every site in order from its conditional distribution, in place.

        Args:
            tokens: Sequences (rows, L).
            keys: Keys (rows,) of the random streams.
            counters: Counters (rows,) of the random streams, advanced in place.
            sweeps: Number of passes over all sites.
        """
        work = self._width * sweeps * tokens.shape[1]
        over_rows(self._sweep, len(tokens), work, tokens, keys, counters, *self._arrays, sweeps)
