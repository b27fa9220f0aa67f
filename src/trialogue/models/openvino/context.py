"""Decoding context of a decoder that OpenVINO evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.models.caching.head_context import HeadContext, HeadedModel
from trialogue.models.openvino.compiled import CompiledDecoder
from trialogue.models.openvino.paged_cache import BLOCK_SIZE, PagedCache
from trialogue.oracles import Context

_POSITIONS_AT_ONCE = 4096
_FIRST_POSITIONS = 256


class EmbeddedDecoder(HeadedModel, Protocol):
    """Protocol of the parts of a model that OpenVINO evaluates.

    Attributes:
        compiled: Compiled decoder.
        embedding: Embeddings (vocab, width) of the tokens.
    """

    compiled: CompiledDecoder
    embedding: Tensor

    def rotation(self, positions: int) -> Tensor:
        """Return cosines and sines (2, n, head size) of the rotary embedding, for at least `positions` positions."""
        ...


class OpenVinoContext(HeadContext):
    """Decoding context with a paged key-value cache, which evaluates rows of different lengths without padding.

    Args:
        oracle: Model to evaluate.
        rows: Number of rows.
        capacity: Maximum number of tokens per row.
        layers: Layers whose residual streams are part of the features, where layer 0 is the embedding.
        cache: Key-value cache (default: an empty one).
    """

    def __init__(
        self,
        oracle: EmbeddedDecoder,
        rows: int,
        capacity: int,
        layers: tuple[int, ...],
        cache: PagedCache | None = None,
    ) -> None:
        super().__init__(oracle, capacity, layers)
        self._oracle, self._body = oracle, oracle.compiled.body(layers)
        if cache is None:
            blocks = rows * -(-min(capacity, _FIRST_POSITIONS) // BLOCK_SIZE)
            cache = PagedCache(oracle.compiled.pool(max(1, blocks)), rows, capacity)
        self._cache = cache

    @property
    def position_bytes(self) -> int:
        """Number of bytes of keys and values per position of a row."""
        memory = self._cache.pool.memory
        return memory.nbytes // (memory.shape[1] * BLOCK_SIZE)

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Compute the features of prefixes, and cache positions `start` to `stop` (both included) of each row.

        Position i is the prefix of i tokens.

        Args:
            tokens: Token sequences (n, capacity) int64.
            start: First position (n,) int64 to compute. Earlier positions are already cached.
            stop: Last position (n,) int64 to compute.
            rows: Row (n,) int64 of the cache for each sequence.

        Returns:
            Features (n, features) of the prefixes of length `stop`.
        """
        self._require_valid_lengths(stop)
        first = np.maximum(start.numpy() - 1, 0)
        counts = stop.numpy() - first
        groups = counts.cumsum() // _POSITIONS_AT_ONCE
        parts = []
        for group in np.unique(groups):
            part = np.flatnonzero(groups == group)
            last = counts[part].cumsum() - 1
            parts.append(
                self._pass(tokens.numpy()[part], first[part], stop.numpy()[part], rows.numpy()[part], last)
            )
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def prefix_features(self, tokens: Tensor, start: int, lengths: Sequence[Sequence[int]]) -> Tensor:
        """Return the features of several prefixes per row from one forward pass.

        Args:
            tokens: Token ids (rows, capacity) int64, one row for each row of the cache.
            start: First position to evaluate. Positions below `start` are cached from an earlier call or copy.
            lengths: Lengths of the prefixes of each row, in increasing order. All are at least `start`.

        Returns:
            Features (n, features) of the n prefixes, in the order of rows and lengths.

        Raises:
            InputError: If a prefix is empty or longer than the capacity.
        """
        stop = np.array([prefixes[-1] for prefixes in lengths])
        self._require_valid_lengths(torch.tensor([length for prefixes in lengths for length in prefixes]))
        first = np.full_like(stop, max(start - 1, 0))
        begin = np.concatenate([[0], (stop - first).cumsum()])
        # A prefix of i tokens ends at position i - 1.
        last = [begin[row] + i - 1 - first[row] for row, prefixes in enumerate(lengths) for i in prefixes]
        return self._pass(tokens.numpy(), first, stop, np.arange(len(stop)), np.array(last))

    def _pass(
        self,
        tokens: NDArray[np.int64],
        first: NDArray[np.int64],
        stop: NDArray[np.int64],
        rows: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> Tensor:
        """Evaluate positions `first` to `stop - 1` of each row, and return the features at the tokens `last` (k,)."""
        self.passes += 1
        self._cache.prepare(rows, first, stop)
        counts = stop - first
        positions = np.arange(counts.sum()) - np.repeat(counts.cumsum() - stop, counts)
        ids = torch.from_numpy(tokens[np.repeat(np.arange(len(rows)), counts), positions])
        embeddings = torch.embedding(self._oracle.embedding, ids)
        rotation = self._oracle.rotation(int(stop.max()))[:, torch.from_numpy(positions)]
        return self._body.run(embeddings, rotation, self._cache, rows, first, stop, last)

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions `start` to `stop`, both included, from rows `source` (n,) to rows `rows` (n,)."""
        self._cache.copy(source.numpy(), rows.numpy(), max(start - 1, 0), stop)

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context for up to `stop` tokens whose row i is a copy of row `rows[i]`."""
        cache = self._cache.fork(rows.numpy(), stop)
        return OpenVinoContext(self._oracle, len(rows), stop, self._layers, cache)
