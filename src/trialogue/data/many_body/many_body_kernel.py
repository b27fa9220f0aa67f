"""Base class of the compiled Gibbs sampling of many-body distributions."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.compilation import run_over_rows

Numbers = NDArray[np.float64]
Tokens = NDArray[np.int64]

ENTRIES = 2**24
"""Maximum number of entries of the tables (128 MiB)."""


class ManyBodyKernel(ABC):
    """Base class of compiled Gibbs samplers for `ManyBody` distributions.

    A Gibbs sweep samples every site in order from its conditional distribution, the softmax of its field.
    Entry a of the field is the part of -E that depends on the site, if the site has value a (E is the
    energy).

    Args:
        fill: Compiled function that computes fields, with arguments (first, last, tokens, sites, *arrays,
            fields). It processes rows `first` to `last` - 1.
        sweep: Compiled function that runs sweeps, with arguments (first, last, tokens, keys, counters,
            *arrays, sweeps). It processes rows `first` to `last` - 1.
        arrays: Tables passed to both functions.
        vocab: Number V of values of a site.
        width: Approximate number of operations to update one site.
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
        """Estimate the time to update one site with this method, in nanoseconds.

        Args:
            positions: Vectors j^p (P, L), one entry per site.
            vectors: Vectors u^q (Q, V), one entry per token.
            order: Number of sites that the energy couples, from 2 to 4.

        Returns:
            Estimated time, or infinity if the tables of the method would be too large.
        """

    def fields(self, tokens: Tokens, sites: Tokens) -> Numbers:
        """Compute the fields of the given sites, whose softmax are the conditional distributions.

        Args:
            tokens: Sequences (rows, L).
            sites: Indices (rows, m) of the sites of each row.

        Returns:
            Fields (rows, m, V).
        """
        fields = np.empty((*sites.shape, self._vocab))
        run_over_rows(
            self._fill, len(tokens), self._width * sites.shape[1], tokens, sites, *self._arrays, fields
        )
        return fields

    def sweep(
        self, tokens: Tokens, keys: NDArray[np.int64], counters: NDArray[np.int64], sweeps: int
    ) -> None:
        """Sample every site in order from its conditional distribution, in place.

        Args:
            tokens: Sequences (rows, L), modified in place.
            keys: Keys (rows,) of the random streams.
            counters: Counters (rows,) of the random streams, advanced in place.
            sweeps: Number of passes over all sites.
        """
        work = self._width * sweeps * tokens.shape[1]
        run_over_rows(self._sweep, len(tokens), work, tokens, keys, counters, *self._arrays, sweeps)
