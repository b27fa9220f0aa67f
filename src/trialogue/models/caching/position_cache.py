"""Keys and values of a Hugging Face model, stored by row and position.

The library's own caches grow at the end of all rows at once. Here every row writes where its tokens lie, so that rows
may be ragged, rewind and be copied: what lies beyond a row's length is masked, and harmless.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


class CachePlace(NamedTuple):
    """Where one pass of the model writes, and what it attends to.

    `rows` (n,) are storage rows and `positions` (n, m) int64 where the pass's m tokens per row belong. Where all rows
    are consecutive, `first` is the first of them, else -1. Where they all write the same single position, `at` is it,
    else -1. Keys up to `reach`, exclusive, are attended.
    """

    rows: Tensor
    positions: Tensor
    first: int
    at: int
    reach: int


class PositionLayer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer, (rows, heads, positions, width of a head), allocated at the first pass."""

    is_sliding = False
    keys: Tensor
    values: Tensor

    def __init__(self, rows: int, positions: int) -> None:
        super().__init__()
        self._shape = (rows, positions)
        self.place: CachePlace | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make room for states like `key_states` and `value_states`, each (n, heads, m, width of a head)."""
        rows, positions = self._shape
        # Zeros, as a masked value of NaN would still spoil the sum it enters with weight zero. A context may be opened
        # in inference mode and used outside of it.
        with torch.inference_mode(False):
            self.keys, self.values = (
                states.new_zeros(rows, states.shape[1], positions, states.shape[3])
                for states in (key_states, value_states)
            )
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the states (n, heads, m, width of a head) in their places; return what is attended to."""
        del args, kwargs
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        return self._written(self.keys, key_states), self._written(self.values, value_states)

    def _written(self, store: Tensor, states: Tensor) -> Tensor:
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
        """How many positions were there before this pass."""
        return 0 if self.place is None else self.place.reach - self.place.positions.shape[1]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """How many positions are attended, and from which on."""
        del query_length
        return (0 if self.place is None else self.place.reach), 0

    def get_max_length(self) -> int:
        """How many positions there is room for."""
        return self._shape[1]


class PositionCache:
    """The cache of `layers` layers for `rows` rows of up to `positions` tokens; one more place takes padding."""

    def __init__(self, layers: int, rows: int, positions: int) -> None:
        self._sizes = (layers, rows, positions)
        self.padding = positions
        self.layers = [PositionLayer(rows, positions + 1) for _ in range(layers)]
        self.cache = Cache(layers=list(self.layers))

    def at(self, place: CachePlace) -> Cache:
        """The cache for a pass that writes at `place`."""
        for layer in self.layers:
            layer.place = place
        return self.cache

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Make positions `start..stop`, exclusive, of `rows` those of `source` (both (n,))."""
        for store in self._stores():
            here, there = rows.to(store.device), source.to(store.device)
            store[here, :, start:stop] = store[there, :, start:stop]

    def fork(self, rows: Tensor, positions: int) -> PositionCache:
        """An independent cache of up to `positions` tokens whose row i starts as this one's row `rows[i]`."""
        layers, _, capacity = self._sizes
        forked, kept = PositionCache(layers, len(rows), positions), min(positions, capacity)
        for mine, theirs in zip(self.layers, forked.layers, strict=True):
            if mine.is_initialized:
                theirs.lazy_initialization(mine.keys, mine.values)
                here = rows.to(mine.keys.device)
                for source, store in ((mine.keys, theirs.keys), (mine.values, theirs.values)):
                    store[:, :, :kept] = source[:, :, :kept][here]
        return forked

    def _stores(self) -> list[Tensor]:
        ready = [layer for layer in self.layers if layer.is_initialized]
        return [store for layer in ready for store in (layer.keys, layer.values)]
