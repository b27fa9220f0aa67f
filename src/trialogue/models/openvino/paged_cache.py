"""Paged key-value cache: rows refer to blocks of positions, which several rows can share until one of them writes."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_SIZE = 32
"""Number of positions in a block, which the attention kernel of OpenVINO fixes for CPUs."""
_UNUSED = -1


class BlockPool:
    """Memory of the keys and values of all layers, divided into blocks with reference counts.

    Args:
        stores: Number of arrays of keys or values, two per layer.
        block_shape: Shape (heads, BLOCK_SIZE, head width) of a block in each array.
        dtype: Type whose size equals the size of the stored numbers.
        blocks: Number of blocks that are allocated first. The number is doubled when all of them are in use.

    Attributes:
        memory: Array (stores, blocks, heads, BLOCK_SIZE, head width).
    """

    def __init__(self, stores: int, block_shape: tuple[int, int, int], dtype: Any, blocks: int) -> None:
        # NumPy requests zeros lazily from the system. A value outside of a row must not be NaN.
        self.memory = np.zeros((stores, blocks, *block_shape), dtype)
        self._references = np.zeros(blocks, np.int64)
        self._released: deque[NDArray[np.int32]] = deque()

    def take(self, count: int) -> NDArray[np.int32]:
        """Return the indices (count,) of unused blocks, each with one reference."""
        while self._released:
            self.release(self._released.popleft())
        free = np.flatnonzero(self._references == 0)[:count]
        if len(free) < count:
            blocks = len(self._references)
            added = max(blocks, count)
            shape = (self.memory.shape[0], blocks + added, *self.memory.shape[2:])
            memory = np.zeros(shape, self.memory.dtype)
            memory[:, :blocks] = self.memory
            self.memory = memory
            self._references = np.concatenate([self._references, np.zeros(added, np.int64)])
            free = np.flatnonzero(self._references == 0)[:count]
        self._references[free] = 1
        return free.astype(np.int32)

    def refer(self, blocks: NDArray[np.int32]) -> None:
        """Add a reference to each block, as often as it occurs. Negative indices are ignored."""
        np.add.at(self._references, blocks[blocks >= 0], 1)

    def release(self, blocks: NDArray[np.int32]) -> None:
        """Remove a reference to each block, as often as it occurs. Negative indices are ignored."""
        np.subtract.at(self._references, blocks[blocks >= 0], 1)

    def release_later(self, blocks: NDArray[np.int32]) -> None:
        """Remove references when blocks are next taken. A destructor can call this at any time."""
        self._released.append(blocks)

    def is_shared(self, blocks: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return whether each block (n,) has several references."""
        return self._references[blocks] > 1


class PagedCache:
    """Blocks of each row of a decoding context, in a pool that contexts share.

    Args:
        pool: Memory of the blocks.
        rows: Number of rows.
        capacity: Maximum number of positions per row.

    Attributes:
        pool: Memory of the blocks.
        tables: Index (rows, blocks) int32 of each block of each row, -1 for no block.
    """

    def __init__(self, pool: BlockPool, rows: int, capacity: int) -> None:
        self.pool = pool
        self.tables = np.full((rows, -(-capacity // BLOCK_SIZE)), _UNUSED, np.int32)
        weakref.finalize(self, pool.release_later, self.tables).atexit = False

    def prepare(self, rows: NDArray[np.int64], first: NDArray[np.int64], stop: NDArray[np.int64]) -> None:
        """Provide blocks that belong to one row only, for positions `first` to `stop - 1` of each row.

        Args:
            rows: Rows (n,) without repetitions.
            first: First position (n,) that will be written.
            stop: Position (n,) after the last one that will be written.
        """
        begin, end = first // BLOCK_SIZE, -(-stop // BLOCK_SIZE)
        counts = end - begin
        owners = np.repeat(rows, counts)
        ends = counts.cumsum()
        self._own(owners, np.arange(len(owners)) - np.repeat(ends - end, counts))

    def _own(self, rows: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Give the blocks at `places` (n,) of `rows` (n,) to these rows alone, with copies of shared blocks."""
        held = self.tables[rows, places]
        is_missing = held < 0
        is_shared = ~is_missing & self.pool.is_shared(held)
        wanted = np.flatnonzero(is_missing | is_shared)
        if not len(wanted):
            return
        taken = self.pool.take(len(wanted))
        self.tables[rows[wanted], places[wanted]] = taken
        copied = is_shared[wanted]
        if copied.any():
            origins = held[wanted[copied]]
            self.pool.memory[:, taken[copied]] = self.pool.memory[:, origins]
            self.pool.release(origins)

    def copy(self, source: NDArray[np.int64], rows: NDArray[np.int64], first: int, stop: int) -> None:
        """Copy positions `first` to `stop - 1` from rows `source` (n,) to rows `rows` (n,).

        All sources are read before any row is written. Complete blocks are shared instead of copied.
        """
        moved = source != rows
        source, rows = source[moved], rows[moved]
        if not len(rows) or first >= stop:
            return
        begin, end = -(-first // BLOCK_SIZE), stop // BLOCK_SIZE
        edges = {first // BLOCK_SIZE: slice(first % BLOCK_SIZE, BLOCK_SIZE)} if first % BLOCK_SIZE else {}
        if stop % BLOCK_SIZE:
            begins_there = edges.get(end, slice(0, BLOCK_SIZE)).start
            edges[end] = slice(begins_there, stop % BLOCK_SIZE)
        read = {}
        for place, span in edges.items():
            held = self.tables[source, place]
            known = held >= 0
            read[place] = known, self.pool.memory[:, held[known], :, span]
        shared = self.tables[source, begin:end]
        self.pool.refer(shared)
        for place, (known, values) in read.items():
            targets = rows[known]
            self._own(targets, np.full(len(targets), place))
            self.pool.memory[:, self.tables[targets, place], :, edges[place]] = values
        if begin < end:
            self.pool.release(self.tables[rows, begin:end])
            self.tables[rows, begin:end] = shared

    def fork(self, rows: NDArray[np.int64], capacity: int) -> PagedCache:
        """Return a cache whose row i shares all blocks of row `rows[i]` up to `capacity` positions."""
        forked = PagedCache(self.pool, len(rows), capacity)
        width = min(self.tables.shape[1], forked.tables.shape[1])
        forked.tables[:, :width] = self.tables[rows, :width]
        self.pool.refer(forked.tables)
        return forked
