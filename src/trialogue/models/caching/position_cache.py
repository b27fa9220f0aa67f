"""Key-value cache of a Hugging Face model, indexed by row and position.

The caches of transformers append to all rows at the same position. In this cache each row has separate write positions,
so rows may have different lengths, and may be rewound or copied. Entries beyond the length of a row are masked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class CachePlace(NamedTuple):
    """Rows and positions of a key-value cache that one forward pass writes and attends to.

    Attributes:
        rows: Rows (n,) int64 of the cache.
        positions: Positions (n, m) int64 of the m tokens of each row.
        first: First row if the rows are consecutive, otherwise -1.
        at: Position of the tokens if the rows are consecutive and m = 1 with equal positions, otherwise -1.
        reach: Number of positions whose keys and values are returned, starting from position 0.
    """

    rows: Tensor
    positions: Tensor
    first: int
    at: int
    reach: int


class PositionLayer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer, with a separate length for each row.

    Args:
        rows: Number of rows.
        positions: Number of positions per row.
    """

    is_sliding = False
    keys: Tensor
    values: Tensor

    def __init__(self, rows: int, positions: int) -> None:
        super().__init__()
        self._shape = (rows, positions)
        self.place: CachePlace | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate keys and values for the heads, head widths and dtypes of the states (n, heads, m, head width)."""
        rows, positions = self._shape
        # Uninitialised memory may hold NaN, and a masked NaN still makes the attention output NaN. A context may be
        # opened in inference mode and used outside of it.
        with torch.inference_mode(False):
            self.keys, self.values = (
                states.new_zeros(rows, states.shape[1], positions, states.shape[3])
                for states in (key_states, value_states)
            )
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Store keys and values at the current `CachePlace`.

        Args:
            key_states: New keys (n, heads, m, head width).
            value_states: New values (n, heads, m, head width).
            *args: Ignored.
            **kwargs: Ignored.

        Returns:
            Keys and values (n, heads, reach, head width) of the rows of the current place.
        """
        del args, kwargs
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        return self._write(self.keys, key_states), self._write(self.values, value_states)

    def _write(self, store: Tensor, states: Tensor) -> Tensor:
        place = self.place
        assert place is not None
        if place.first < 0:
            store.transpose(1, 2)[place.rows[:, None], place.positions] = states.transpose(1, 2)
            return store.narrow(2, 0, place.reach).index_select(0, place.rows)
        written = store.narrow(0, place.first, len(states))
        if place.at >= 0:
            written.narrow(2, place.at, 1).copy_(states)
        else:
            written.transpose(1, 2).scatter_(
                1,
                place.positions[:, :, None, None].expand(-1, -1, *states.shape[1::2]),
                states.transpose(1, 2),
            )
        return written.narrow(2, 0, place.reach)

    def get_seq_length(self) -> int:
        """Return the number of positions that were stored before this pass."""
        return 0 if self.place is None else self.place.reach - self.place.positions.shape[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of attended positions, and the index of the first one."""
        del query_length
        return (0 if self.place is None else self.place.reach), 0

    def get_max_length(self) -> int:
        """Return the number of positions per row."""
        return self._shape[1]


class PositionCache:
    """Key-value cache of all layers, with one additional position that receives padding.

    Args:
        layers: Number of layers.
        rows: Number of rows.
        positions: Maximum number of tokens per row.
    """

    def __init__(self, layers: int, rows: int, positions: int) -> None:
        self._sizes = (layers, rows, positions)
        self.padding = positions
        self.layers = [PositionLayer(rows, positions + 1) for _ in range(layers)]
        self.cache = Cache(layers=list(self.layers))

    def at(self, place: CachePlace) -> Cache:
        """Return the transformers cache, set to write at `place` in the next forward pass."""
        for layer in self.layers:
            layer.place = place
        return self.cache

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions `start` to `stop - 1` from rows `source` (n,) to rows `rows` (n,)."""
        for store in self._stores():
            target_rows, source_rows = rows.to(store.device), source.to(store.device)
            store[target_rows, :, start:stop] = store[source_rows, :, start:stop]

    def fork(self, rows: Tensor, positions: int) -> PositionCache:
        """Return an independent cache for up to `positions` tokens whose row i is a copy of row `rows[i]`."""
        layers, _, capacity = self._sizes
        forked, copied = PositionCache(layers, len(rows), positions), min(positions, capacity)
        for old, new in zip(self.layers, forked.layers, strict=True):
            if old.is_initialized:
                new.lazy_initialization(old.keys, old.values)
                source_rows = rows.to(old.keys.device)
                for source, store in ((old.keys, new.keys), (old.values, new.values)):
                    store[:, :, :copied] = source[:, :, :copied][source_rows]
        return forked

    def _stores(self) -> list[Tensor]:
        initialized = [layer for layer in self.layers if layer.is_initialized]
        return [store for layer in initialized for store in (layer.keys, layer.values)]
