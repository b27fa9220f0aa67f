"""Decoding contexts of pretrained causal models, with and without a key-value cache."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from trialogue.models.caching.decoder_pass import DecoderPass
from trialogue.models.caching.head_context import HeadContext, HeadedModel
from trialogue.models.caching.position_cache import CachePlace, PositionCache
from trialogue.models.decoders.network import DecoderBody
from trialogue.oracles import Context

_POSITIONS_AT_ONCE = 4096
_PADDING_SHARE = 1.25
# A forward pass of a small model takes as long as about 12 further positions of a pass.
_PADDING_POSITIONS = 12


class CausalModel(HeadedModel, Protocol):
    """Protocol of the parts and sizes of a causal Hugging Face model that a decoding context needs.

    Attributes:
        model: Model with its output head.
        body: Model without its output head.
        decoder: Faster forward pass of `body`, if any.
        layers: Number of blocks.
        device: Device of the model.
        dtype: Data type of the model's states.
    """

    model: Any
    body: Any
    decoder: DecoderPass | None
    layers: int
    device: torch.device
    dtype: torch.dtype


class PretrainedContext(HeadContext):
    """Base class of decoding contexts that evaluate a model of transformers.

    Args:
        oracle: Model to evaluate.
        capacity: Maximum number of tokens per row.
        layers: Layers whose residual streams are part of the features, where layer 0 is the embedding.
    """

    def __init__(self, oracle: CausalModel, capacity: int, layers: tuple[int, ...]) -> None:
        super().__init__(oracle, capacity, layers)
        self._oracle = oracle

    def _pass(self, ids: Tensor, rows: Tensor, last: Tensor, settings: dict[str, Any]) -> Tensor:
        """Run the network on ids (n, m), and return the features (k, features) at one index of each of k rows."""
        oracle = self._oracle
        states = bool(self._layers)
        self.passes += 1
        rows, last = rows.to(ids.device), last.to(ids.device)
        if oracle.plain_head:
            streams = self._streams(ids, states, settings)
            parts = [streams[-1][rows, last]]
        else:
            output = oracle.model(input_ids=ids, output_hidden_states=True, **settings)
            streams = output.hidden_states
            parts = [output.logits[rows, last], streams[-1][rows, last]]
        parts += [streams[layer][rows, last] for layer in self._layers]
        return torch.cat(parts, 1) if len(parts) > 1 else parts[0]

    def _streams(self, ids: Tensor, all_layers: bool, settings: dict[str, Any]) -> Sequence[Tensor]:
        """Return the residual streams (n, m, width) of input ids (n, m), ending with the input of the output head.

        With `all_layers`, the streams before each block precede it.
        """
        output = self._oracle.body(input_ids=ids, output_hidden_states=all_layers, **settings)
        return (*(output.hidden_states or ())[:-1], output.last_hidden_state)

    def prefix_features(self, tokens: Tensor, start: int, lengths: Sequence[Sequence[int]]) -> Tensor:
        """Return the features of several prefixes per row from one forward pass.

        The cache may be incomplete after this call, so do not evaluate further prefixes with this context.

        Args:
            tokens: Token ids (rows, capacity) int64, one row for each row of the cache.
            start: First position to evaluate. Positions below `start` are cached from an earlier call or copy.
            lengths: Lengths of the prefixes of each row, in increasing order. All are at least `start`.

        Returns:
            Features (n, features) of the n prefixes, in the order of rows and lengths.

        Raises:
            InputError: If a prefix is empty or longer than the capacity.
        """
        stop = torch.tensor([prefixes[-1] for prefixes in lengths])
        self._require_valid_lengths(stop)
        first = torch.full_like(stop, 0 if self.recomputes else max(start - 1, 0))
        if start:
            ids, settings = self._inputs(tokens, first, stop, torch.arange(len(stop)))
        else:
            ids, settings = self._uncached_inputs(tokens, stop)
        rows = torch.tensor([row for row, prefixes in enumerate(lengths) for _ in prefixes])
        # A prefix of i tokens ends at index i - 1. Padding is on the right, where causal attention ignores it.
        last = torch.tensor([length - 1 for prefixes in lengths for length in prefixes]) - first[rows]
        return self._pass(ids, rows, last, settings)

    @abstractmethod
    def _inputs(
        self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        """Return input ids and other arguments of the network for indices `first` to `stop - 1` of each row."""

    def _uncached_inputs(self, tokens: Tensor, stop: Tensor) -> tuple[Tensor, dict[str, Any]]:
        """Return the network's arguments to evaluate complete prefixes without a cache: input ids and others."""
        # Padding is on the right, where causal attention ignores it.
        return tokens[:, : int(stop.max())].to(self._oracle.device), {"use_cache": False}

    def _evaluate_groups(self, counts: Tensor, evaluate: Callable[[Tensor], Tensor]) -> Tensor:
        """Evaluate groups of rows with similar `counts` (n,) of positions, and return features (n, features)."""
        groups = self._group_rows(counts)
        parts = [evaluate(group) for group in groups]
        order = torch.cat(groups).argsort()
        return torch.cat(parts)[order.to(parts[0].device)]

    def _group_rows(self, counts: Tensor) -> list[Tensor]:
        """Group row indices, longest rows first, so that padding and the size of a forward pass stay small."""
        order = counts.argsort(descending=True)
        groups: list[Tensor] = []
        begin, unpadded = 0, 0
        for place, count in enumerate(counts[order].tolist()):
            longest = int(counts[order[begin]])
            padded = longest * (place + 1 - begin)
            positions = unpadded + count
            most = max(_PADDING_SHARE * positions, positions + _PADDING_POSITIONS)
            if place > begin and (padded > most or padded > _POSITIONS_AT_ONCE):
                groups.append(order[begin:place])
                begin, unpadded = place, 0
            unpadded += count
        return [*groups, order[begin:]]


class CachedContext(PretrainedContext):
    """Decoding context of a pretrained model with a key-value cache.

    Args:
        oracle: Model to evaluate.
        capacity: Maximum number of tokens per row.
        layers: Layers whose residual streams are part of the features, where layer 0 is the embedding.
        cache: Key-value cache with the same capacity.
    """

    def __init__(
        self, oracle: CausalModel, capacity: int, layers: tuple[int, ...], cache: PositionCache
    ) -> None:
        super().__init__(oracle, capacity, layers)
        self._cache = cache
        self._range = torch.arange(capacity + 1, device=oracle.device)

    @property
    def position_bytes(self) -> int:
        """Number of bytes of keys and values per position of a row, or 0 before the first evaluation."""
        return self._cache.position_bytes

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
        first = (start - 1).clamp_min(0)
        counts = stop - first
        if int(counts.max()) == 1 or len(rows) == 1:
            return self._evaluate(tokens, first, stop, rows)

        def evaluate_group(group: Tensor) -> Tensor:
            return self._evaluate(tokens[group], first[group], stop[group], rows[group])

        return self._evaluate_groups(counts, evaluate_group)

    def _evaluate(self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate indices `first` to `stop - 1` of `tokens` (n, capacity), and return features (n, features)."""
        ids, settings = self._inputs(tokens, first, stop, rows)
        return self._pass(ids, torch.arange(len(ids)), stop - first - 1, settings)

    def _streams(self, ids: Tensor, all_layers: bool, settings: dict[str, Any]) -> Sequence[Tensor]:
        decoder = self._oracle.decoder
        if decoder is None or not settings["use_cache"] or not decoder.as_loaded():
            return super()._streams(ids, all_layers, settings)
        return decoder(ids, settings["position_ids"], settings["attention_mask"], self._cache.layers)

    def _inputs(
        self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        device, counts = self._oracle.device, stop - first
        longest, reach = int(counts.max()), int(stop.max())
        self._cache.reserve(reach)
        positions = first[:, None] + torch.arange(longest)
        ids = tokens.gather(1, positions.clamp_max(tokens.shape[1] - 1))
        # A later rewind may need any cached position, so padding is written to an extra position.
        kept = torch.where(positions < stop[:, None], positions, self._cache.padding)
        consecutive = bool((rows[1:] - rows[:-1] == 1).all())
        equal_lengths = longest == 1 and int(stop.min()) == reach
        place = CachePlace(
            rows.to(device),
            kept.to(device),
            int(rows[0]) if consecutive else -1,
            reach - 1 if equal_lengths and consecutive else -1,
            reach,
        )
        self._cache.set_place(place)
        is_own = isinstance(self._oracle.body, DecoderBody)
        # Padding must not exceed the learned position embeddings.
        positions = positions.minimum(stop[:, None] - 1).to(device)
        return ids.to(device), {
            "attention_mask": None if equal_lengths else self._mask(positions, reach),
            "position_ids": positions,
            "past_key_values": self._cache if is_own else self._cache.transformers_cache,
            "use_cache": True,
        }

    def _mask(self, positions: Tensor, reach: int) -> Tensor:
        """Return the additive causal mask (n, 1, m, reach) for queries at `positions` (n, m)."""
        dtype = self._oracle.dtype
        future = self._range[:reach] > positions[:, None, :, None]
        return torch.zeros(future.shape, dtype=dtype, device=future.device).masked_fill_(
            future, torch.finfo(dtype).min
        )

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions `start` to `stop`, both included, from rows `source` (n,) to rows `rows` (n,)."""
        self._cache.copy(source, rows, max(start - 1, 0), stop)

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return an independent context for up to `stop` tokens whose row i is a copy of row `rows[i]`."""
        return CachedContext(self._oracle, stop, self._layers, self._cache.fork(rows, stop))


class RecomputedContext(PretrainedContext):
    """Decoding context of a pretrained model without a cache. It evaluates complete prefixes in every call.

    Args:
        oracle: Model to evaluate.
        capacity: Maximum number of tokens per row.
        layers: Layers whose residual streams are part of the features, where layer 0 is the embedding.
    """

    recomputes = True

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate the prefixes of length `stop`, and ignore `start` and `rows`."""
        del start, rows
        self._require_valid_lengths(stop)

        def evaluate_group(group: Tensor) -> Tensor:
            ids, settings = self._uncached_inputs(tokens[group], stop[group])
            return self._pass(ids, torch.arange(len(ids)), stop[group] - 1, settings)

        return self._evaluate_groups(stop, evaluate_group)

    def _inputs(
        self, tokens: Tensor, first: Tensor, stop: Tensor, rows: Tensor
    ) -> tuple[Tensor, dict[str, Any]]:
        del first, rows
        return self._uncached_inputs(tokens, stop)

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Do nothing, because this context caches nothing."""

    def fork(self, rows: Tensor, stop: int) -> Context:
        """Return a new context for up to `stop` tokens."""
        del rows
        return RecomputedContext(self._oracle, stop, self._layers)
