"""Key-value cache of a Hugging Face model, indexed by row and position.

The caches of transformers append to all rows at the same position. In this cache each row has separate write positions,
so rows may have different lengths, and may be rewound or copied. Entries beyond the length of a row are masked.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

if TYPE_CHECKING:
    from transformers.cache_utils import Cache


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


_FIRST_POSITIONS = 256


class PositionLayer:
    """Keys and values of one layer, with a separate length for each row.

    It has the interface of `CacheLayerMixin` of transformers.

    Args:
        rows: Number of rows.
        positions: Maximum number of positions per row.
    """

    is_sliding = is_compileable = False
    keys: Tensor
    values: Tensor

    def __init__(self, rows: int, positions: int) -> None:
        self._shape, self._allocated, self.is_initialized = (rows, positions), 0, False
        self.place: CachePlace | None = None

    def allocate(self, positions: int) -> None:
        """Provide memory for more positions, and keep the stored keys and values.

        Args:
            positions: Number of positions per row, at least the current one.
        """
        more, self._allocated = positions - self._allocated, positions
        if self.is_initialized:
            with torch.inference_mode(False):
                self.keys, self.values = (pad(store, (0, 0, 0, more)) for store in (self.keys, self.values))

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocate keys and values for the heads, head widths and dtypes of the states (n, heads, m, head width)."""
        rows = self._shape[0]
        # Uninitialised memory may hold NaN, and a masked NaN still makes the attention output NaN. A context may be
        # opened in inference mode and used outside of it.
        with torch.inference_mode(False):
            self.keys, self.values = (
                states.new_zeros(rows, states.shape[1], self._allocated, states.shape[3])
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

    The memory grows with the longest row, by a factor of two.

    Args:
        layers: Number of layers.
        rows: Number of rows.
        positions: Maximum number of tokens per row.
    """

    def __init__(self, layers: int, rows: int, positions: int) -> None:
        self._sizes = (layers, rows, positions)
        self._allocated = 0
        self.layers = [PositionLayer(rows, positions + 1) for _ in range(layers)]

    @cached_property
    def transformers_cache(self) -> Cache:
        """Cache of transformers with the same layers."""
        from transformers.cache_utils import Cache, CacheLayerMixin

        CacheLayerMixin.register(PositionLayer)
        return Cache(layers=list(self.layers))

    @property
    def padding(self) -> int:
        """Position that receives padding, which is the last allocated one."""
        return self._allocated - 1

    @property
    def position_bytes(self) -> int:
        """Number of bytes that one position of one row needs, or 0 if no position has been stored."""
        return sum(store[0, :, :1].nbytes for store in self._stores())

    def reserve(self, positions: int) -> None:
        """Provide memory for rows of a number of tokens.

        Args:
            positions: Number of tokens, at most the maximum.
        """
        if positions < self._allocated:
            return
        doubled = max(_FIRST_POSITIONS, 2 * self._allocated, positions + 1)
        self._allocated = min(doubled, self._sizes[2] + 1)
        for layer in self.layers:
            layer.allocate(self._allocated)

    def set_place(self, place: CachePlace) -> None:
        """Write keys and values at `place` in the next forward pass."""
        for layer in self.layers:
            layer.place = place

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions `start` to `stop - 1` from rows `source` (n,) to rows `rows` (n,)."""
        for store in self._stores():
            target_rows, source_rows = rows.to(store.device), source.to(store.device)
            store[target_rows, :, start:stop] = store[source_rows, :, start:stop]

    def fork(self, rows: Tensor, positions: int) -> PositionCache:
        """Return an independent cache for up to `positions` tokens whose row i is a copy of row `rows[i]`."""
        forked, copied = PositionCache(self._sizes[0], len(rows), positions), min(positions, self.padding)
        forked.reserve(copied)
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
