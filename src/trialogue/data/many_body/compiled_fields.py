"""What compiled fields of a many-body distribution have in common: kernels over rows, and what these cost."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import over_rows

Numbers = NDArray[np.float64]
Tokens = NDArray[np.int64]

ENTRIES = 2**24
"""More numbers than 128 MB are not laid out."""


class CompiledFields(ABC):
    """Fields -dE by value of a site, and the heat bath that draws from them; `vocab` values.

    `fill` and `sweep` are compiled: (first, last, tokens, sites, *arrays, fields) and (first, last, tokens, keys,
    counters, *arrays, sweeps). An update is about `width` operations.
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
        """About what an update costs; infinite where too much would be laid out."""

    def fields(self, tokens: Tokens, sites: Tokens) -> Numbers:
        """Fields (rows, m, V) at the `sites` (rows, m) of `tokens` (rows, L)."""
        fields = np.empty((*sites.shape, self._vocab))
        over_rows(self._fill, len(tokens), self._width * sites.shape[1], tokens, sites, *self._arrays, fields)
        return fields

    def sweep(
        self, tokens: Tokens, keys: NDArray[np.int64], counters: NDArray[np.int64], sweeps: int
    ) -> None:
        """Draw every site of `tokens` (rows, L) in place, in order, so many times; the streams move on."""
        work = self._width * sweeps * tokens.shape[1]
        over_rows(self._sweep, len(tokens), work, tokens, keys, counters, *self._arrays, sweeps)
