"""Key-value cache of a causal `Transformer`, indexed by row and position.

Rows (sequences) grow, shrink and are copied independently. A row never attends to positions beyond the requested
length, so removing tokens costs nothing, and outdated entries are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.caching.causal_network import CausalNetwork
from trialogue.oracles import Context

# With one query per row on a CPU, the fused attention kernel has the least overhead for few rows. From this many rows
# on, one matrix product per row over all heads is faster. The product multiplies by zeros, so it needs few heads.
_PRODUCT_ROWS = 16
_PRODUCT_HEADS = 8
# From this many rows on, the decomposed GELU is faster than the fused operator on a CPU.
_SIGMOID_ROWS = 8
_LINEAR_TERM = torch.tensor(2 * math.sqrt(2 / math.pi), dtype=torch.float64)

_KeysValuesByLayer = Callable[[int], tuple[Tensor, Tensor]]


def attended_positions(length: int, window: int | None = None, device: torch.device | None = None) -> Tensor:
    """Return the causal attention mask (length, length) bool, which is True where a query attends to a key.

    Args:
        length: Number of positions.
        window: Number of most recent positions that each position attends to. None for all previous positions.
        device: Device of the mask.
    """
    allowed = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    return allowed if window is None else allowed.triu(1 - window)


class _BlockWeights(NamedTuple):
    """Parameters of a block, collected once because attribute look-ups in modules are slow for a single row.

    A LayerNorm is stored as (weight, bias), a linear layer as (bias, transposed weight) for `torch.addmm`.
    """

    attention_norm: tuple[Tensor, Tensor]
    qkv: tuple[Tensor, Tensor]
    queries: tuple[Tensor, Tensor]
    keys_values: tuple[Tensor, Tensor]
    projection: tuple[Tensor, Tensor]
    mlp_norm: tuple[Tensor, Tensor]
    up: tuple[Tensor, Tensor]
    down: tuple[Tensor, Tensor]
    uses_relu: bool
    """Whether the activation of the MLP is ReLU instead of GELU."""


def _block_weights(block: nn.Module) -> _BlockWeights:
    parts: dict[str, Any] = dict(block.named_children())
    parameters = {name: (part.weight.detach(), part.bias.detach()) for name, part in parts.items()}
    maps = {name: (bias, weight.t()) for name, (weight, bias) in parameters.items()}
    bias, weight = maps["qkv"]
    width = len(bias) // 3
    return _BlockWeights(
        parameters["attention_norm"],
        maps["qkv"],
        (bias[:width], weight[:, :width]),
        (bias[width:], weight[:, width:]),
        maps["projection"],
        parameters["mlp_norm"],
        maps["up"],
        maps["down"],
        block.activation == "relu",
    )


class AttentionCache(Context):
    """Key-value cache of a `Transformer`, so that each position is evaluated once.

    Position 0 of every row is the BOS token, and position i is the row's i-th token. Features have the shape
    (n, width * (1 + len(layers))): the input of the output head, followed by the residual stream after each
    of `layers`. The model must not change while the cache is in use.

    Args:
        model: Network to evaluate.
        rows: Number of rows.
        capacity: Maximum number of tokens per row, without BOS.
        layers: Layers whose residual streams are part of the features, where layer 0 is the embedding.
        store: Initial keys and values, which are copied. None for zeros.
    """

    def __init__(
        self,
        model: CausalNetwork,
        rows: int,
        capacity: int,
        layers: Sequence[int],
        store: Tensor | None = None,
    ) -> None:
        self._model, self._capacity, self._layers = model, capacity, tuple(layers)
        self._width, self._heads = model.config.width, model.config.heads
        self._blocks = [_block_weights(block) for block in model.blocks]
        self._final_norm = (model.final_norm.weight.detach(), model.final_norm.bias.detach())
        self._head = model.head.weight.detach()
        self._embedding = model.token_embedding.weight.detach()
        learned = model.config.positions == "learned"
        self._positions = model.position_embedding.weight.detach() if learned else None
        positions, device = capacity + 1, self._head.device
        # Keys and values are stored separately, because contiguous keys are read about twice as fast.
        shape = (2 * len(self._blocks), rows, positions, self._width)
        # A context may be opened in inference mode and used outside of it.
        with torch.inference_mode(False):
            self._store = self._head.new_zeros(shape) if store is None else store.clone()
        self._split = (self._heads, self._width // self._heads)
        self._by_head = self._store.unflatten(3, self._split).transpose(2, 3)
        self._flat = self._store.view(len(self._blocks), -1, self._width).unbind(0)
        self._values_offset = torch.tensor([0, rows * positions], device=device)
        self._rows = torch.arange(rows, device=device)
        self._window = model.config.attention_window
        blocked = ~attended_positions(positions, self._window, device)
        self._mask = self._head.new_zeros(positions, positions).masked_fill_(blocked, -torch.inf)
        heads = torch.eye(self._heads, dtype=self._head.dtype, device=device)
        self._scale = 1 / math.sqrt(self._split[1]) if model.config.scaled_attention else 1.0
        self._scaled_heads = heads.repeat_interleave(self._split[1], 1) * self._scale
        self._uses_products = device.type == "cpu" and self._heads <= _PRODUCT_HEADS

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

        Raises:
            InputError: If `stop` exceeds the capacity.
        """
        device = self._head.device
        tokens, start, stop, rows = tokens.to(device), start.to(device), stop.to(device), rows.to(device)
        n = len(rows)
        if n == 0:
            return self._head.new_zeros(0, self._width * (1 + len(self._layers)))
        first = last = int(stop[0])
        if n > 1:
            first, last = (int(bound) for bound in torch.aminmax(stop))
        if last > self._capacity:
            raise InputError(
                "capacity", self._capacity, f"open a larger context for prefixes of {last} tokens"
            )
        if start is not stop and not torch.equal(start, stop):
            self._fill(tokens, start, stop, rows)
        ids = tokens[:, last - 1] if 0 < first == last else self._ids(tokens, stop)
        x = self._embed(ids, stop)
        indices = self._storage_indices(rows, stop)
        product = self._uses_products and n >= _PRODUCT_ROWS
        attend = self._attend_by_product if product else self._attend_once
        span = self._key_range(first, last)
        stored = self._keys_values(self._store if product else self._by_head, rows, span)
        mask = None if first == last else self._mask.index_select(0, stop)[:, None, span]
        streams = {0: x}
        for layer, weights in enumerate(self._blocks):
            q = self._store_keys_values(layer, weights, x, indices)
            x = _add_attention(weights, x, attend(q, *stored(layer), mask))
            x = streams[layer + 1] = _add_mlp(weights, self._read(layer, x, rows))
        read = streams[-1] = layer_norm(x, self._final_norm)
        return torch.cat([read, *(streams[layer] for layer in self._layers)], 1) if self._layers else read

    def log_probs(self, features: Tensor) -> Tensor:
        """Return the log-probabilities (n, data tokens + EOS) of the next token from features (n, features).

        They are float64 for a float64 model, and float32 otherwise.
        """
        logits = F.linear(self.hidden(features, -1), self._head)
        return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Return the residual stream (n, width) after `layer` blocks.

        Layer -1 is the input of the output head, after the final LayerNorm.

        Raises:
            InputError: If the context was opened without this layer.
        """
        if layer == -1:
            return features[:, : self._width] if self._layers else features
        if layer not in self._layers:
            raise InputError("layer", layer, f"not recorded. Open the context with layers=({layer},)")
        return features.unflatten(1, (-1, self._width))[:, 1 + self._layers.index(layer)]

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Copy positions `start` to `stop`, both included, from rows `source` (n,) to rows `rows` (n,).

        All sources are read before any row is written.
        """
        source, rows = source.to(self._rows.device), rows.to(self._rows.device)
        moved = source != rows
        store = self._store[:, :, start : stop + 1]
        store[:, rows[moved]] = store[:, source[moved]]

    def fork(self, rows: Tensor, stop: int) -> AttentionCache:
        """Return an independent context for up to `stop` tokens whose row i is a copy of row `rows[i]`."""
        return AttentionCache(self._model, len(rows), stop, self._layers, self._forked(rows, stop))

    def _forked(self, rows: Tensor, stop: int) -> Tensor:
        """Return keys and values of `rows` (n,), padded or truncated to `stop` tokens."""
        store = self._store[:, :, : stop + 1][:, rows.to(self._rows.device)]
        return F.pad(store, (0, 0, 0, stop - self._capacity)) if stop > self._capacity else store

    def _fill(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> None:
        """Store keys and values of positions `start` to `stop - 1` of each row, packed without padding."""
        pending = (start < stop).nonzero()[:, 0]
        tokens, start, rows = tokens[pending], start[pending], rows[pending]
        counts = stop[pending] - start
        longest, reach = int(counts.max()), int(stop[pending].max())
        span = self._key_range(int(start.min()), reach - 1)
        offsets = torch.arange(longest, device=tokens.device)
        row, offset = (offsets < counts[:, None]).nonzero(as_tuple=True)
        positions = start[row] + offset
        slots = row * longest + offset
        mask = self._mask[(start[:, None] + offsets).clamp_max(reach - 1), span]
        x = self._embed(self._ids(tokens[row], positions), positions)
        indices = self._storage_indices(rows[row], positions)
        stored = self._keys_values(self._by_head, rows, span)
        for layer, weights in enumerate(self._blocks):
            q = self._store_keys_values(layer, weights, x, indices)
            if layer + 1 == len(self._blocks):
                break  # Only keys and values are needed: features are computed at position `stop`.
            padded = q.new_zeros(len(rows) * longest, self._width).index_copy_(0, slots, q)
            attended = self._attend(padded.view(len(rows), longest, -1), *stored(layer), mask)
            x = _add_attention(weights, x, attended.flatten(0, 1).index_select(0, slots))
            x = _add_mlp(weights, self._read(layer, x, rows[row]))

    def _read(self, layer: int, x: Tensor, rows: Tensor) -> Tensor:
        """Apply cross-attention to the residual stream `x` (n, width), if the network has cross-attention."""
        del layer, rows
        return x

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Return the embeddings of input ids at given positions, without recording gradients."""
        if self._positions is None:
            return self._model.embed(ids, positions).detach()
        return torch.embedding(self._embedding, ids) + torch.embedding(self._positions, positions)

    def _ids(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Return input ids (n,) at `positions` (n,) of `tokens` (n, capacity), where position 0 is BOS."""
        if not tokens.shape[1]:
            return torch.full_like(positions, self._model.bos)
        ids = tokens.gather(1, (positions - 1).clamp_min(0)[:, None])[:, 0]
        return torch.where(positions == 0, self._model.bos, ids)

    def _storage_indices(self, rows: Tensor, positions: Tensor) -> Tensor:
        """Return where the keys and values of each position (n,) are stored, as flat indices (2 * n,)."""
        return ((rows * (self._capacity + 1) + positions)[:, None] + self._values_offset).view(-1)

    def _store_keys_values(self, layer: int, weights: _BlockWeights, x: Tensor, indices: Tensor) -> Tensor:
        """Store keys and values of the residual stream `x` (n, width), and return its queries (n, width)."""
        x = layer_norm(x, weights.attention_norm)
        if x.shape[0] == 1:
            # For a single row, the output of `qkv` already has keys and values in storage order.
            parts = linear(x, weights.qkv).view(3, self._width)
            self._flat[layer].index_copy_(0, indices, parts[1:])
            return parts[:1]
        keys_values = linear(x, weights.keys_values)
        self._flat[layer].index_copy_(0, indices, keys_values.view(-1, self._width))
        return linear(x, weights.queries)

    def _key_range(self, first: int, last: int) -> slice:
        """Return the range of positions to which one of the positions `first` to `last` attends."""
        return slice(0 if self._window is None else max(0, first + 1 - self._window), last + 1)

    def _keys_values(self, store: Tensor, rows: Tensor, span: slice) -> _KeysValuesByLayer:
        """Return keys and values (n, ..., keys, ...) of `rows` by layer, as views if the rows are consecutive."""
        n, first = len(rows), int(rows[0])
        store = store.narrow(-2, span.start, span.stop - span.start)
        if n == 1 or torch.equal(rows, self._rows[first : first + n]):
            views = store.narrow(1, first, n).unbind(0)
            return lambda layer: (views[2 * layer], views[2 * layer + 1])
        return lambda layer: (
            store[2 * layer].index_select(0, rows),
            store[2 * layer + 1].index_select(0, rows),
        )

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Return attention (n, m, width) of queries (n, m, width) over keys and values (n, heads, keys, head width).

        The mask (n, m, keys) is added to the scores.
        """
        q = q.unflatten(2, self._split).transpose(1, 2)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None], scale=self._scale)
        return attended.transpose(1, 2).flatten(2)

    def _attend_once(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Compute `_attend` for one query (n, width) per row, with a mask (n, 1, keys) or None for no mask."""
        attended = F.scaled_dot_product_attention(
            q.view(-1, self._heads, 1, self._split[1]),
            k,
            v,
            attn_mask=None if mask is None else mask[:, None],
            scale=self._scale,
        )
        return attended.view(q.shape)

    def _attend_by_product(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Compute the attention of one query per row to keys and values (n, keys, width), by matrix products."""
        scores = torch.bmm(q[:, None] * self._scaled_heads, k.transpose(1, 2))
        if mask is not None:
            scores += mask
        mixed = torch.bmm(scores.softmax(-1), v).unflatten(2, self._split)
        # Every head averages the values of all heads, and the diagonal holds the values of the same head.
        return mixed.diagonal(dim1=1, dim2=2).transpose(1, 2).reshape(q.shape)


def layer_norm(x: Tensor, norm: tuple[Tensor, Tensor]) -> Tensor:
    """Apply a LayerNorm (weight, bias) to `x` (n, width)."""
    return torch.layer_norm(x, x.shape[-1:], *norm)


def linear(x: Tensor, parameters: tuple[Tensor, Tensor]) -> Tensor:
    """Apply a linear layer (bias, transposed weight) to `x` (n, width)."""
    bias, weight = parameters
    return torch.addmm(bias, x, weight)


def _add_attention(weights: _BlockWeights, x: Tensor, attended: Tensor) -> Tensor:
    """Project the attention output and add it to the residual stream `x` (n, width)."""
    return linear(attended, weights.projection).add_(x)


def _add_mlp(weights: _BlockWeights, x: Tensor) -> Tensor:
    """Apply the MLP and add it to the residual stream `x` (n, width)."""
    hidden = linear(layer_norm(x, weights.mlp_norm), weights.up)
    inner = hidden.relu_() if weights.uses_relu else _gelu(hidden)
    return linear(inner, weights.down).add_(x)


def _gelu(x: Tensor) -> Tensor:
    """Return `gelu(x, approximate="tanh")` of x (n, width), which may be overwritten."""
    if x.shape[0] < _SIGMOID_ROWS or x.device.type != "cpu":
        return F.gelu(x, approximate="tanh")
    # x (1 + tanh(u)) / 2 equals x sigmoid(2 u), and torch computes a sigmoid twice as fast as a tanh.
    inner = torch.addcmul(_LINEAR_TERM, x, x, value=0.044715 * _LINEAR_TERM.item())
    return x.mul_(inner.mul_(x).sigmoid_())
