"""Incremental evaluation of a causal `Transformer`: keys and values stored by row and position.

Rows grow, shrink and are copied independently. A position is only ever attended up to the length that is asked
for, so whatever lies beyond it is harmless, and a rewind costs nothing.
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

# One query per row, on a CPU: the fused kernel has the least overhead; from this many rows on, one matrix product
# per row over all heads at once is faster. It multiplies by zeros, which pays while heads are few.
_PRODUCT_ROWS = 16
_PRODUCT_HEADS = 8
# From this many rows on, on a CPU, a GELU in several operators takes less time than in one.
_SIGMOID_ROWS = 8
_LINEAR_TERM = torch.tensor(2 * math.sqrt(2 / math.pi), dtype=torch.float64)

_Stored = Callable[[int], tuple[Tensor, Tensor]]


def attended_positions(length: int, window: int | None = None, device: torch.device | None = None) -> Tensor:
    """Which positions (length, length) bool each position of a causal model attends to: its last `window` or all."""
    allowed = torch.ones(length, length, dtype=torch.bool, device=device).tril()
    return allowed if window is None else allowed.triu(1 - window)


class _Weights(NamedTuple):
    """Parameters of a block: looking them up in modules takes as long as using them on one row.

    LayerNorms are (weight, bias); linear maps (bias, transposed weight), as `torch.addmm` takes them.
    """

    attention_norm: tuple[Tensor, Tensor]
    qkv: tuple[Tensor, Tensor]
    queries: tuple[Tensor, Tensor]
    keys_values: tuple[Tensor, Tensor]
    projection: tuple[Tensor, Tensor]
    mlp_norm: tuple[Tensor, Tensor]
    up: tuple[Tensor, Tensor]
    down: tuple[Tensor, Tensor]
    relu: bool
    """The MLP's activation is ReLU, not GELU"""


def _weights(block: nn.Module) -> _Weights:
    parts: dict[str, Any] = dict(block.named_children())
    parameters = {name: (part.weight.detach(), part.bias.detach()) for name, part in parts.items()}
    maps = {name: (bias, weight.t()) for name, (weight, bias) in parameters.items()}
    bias, weight = maps["qkv"]
    width = len(bias) // 3
    return _Weights(
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
    """The context of a `Transformer`; position 0 of every row is BOS, position i its i-th token.

    Features are (n, width * (1 + len(layers))): what the head reads, then the residual stream of each of `layers`,
    in the dtype and on the device of the model, which must stay as they are while the context is open.
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
        self._blocks = [_weights(block) for block in model.blocks]
        self._final_norm = (model.final_norm.weight.detach(), model.final_norm.bias.detach())
        self._head = model.head.weight.detach()
        self._embedding = model.token_embedding.weight.detach()
        learned = model.config.positions == "learned"
        self._positions = model.position_embedding.weight.detach() if learned else None
        positions, device = capacity + 1, self._head.device
        # Keys and values lie apart: a row's keys stream from memory about twice as fast as when interleaved.
        shape = (2 * len(self._blocks), rows, positions, self._width)
        with torch.inference_mode(False):  # a context may be opened in inference mode and used outside of it
            self._store = self._head.new_zeros(shape) if store is None else store.clone()
        self._split = (self._heads, self._width // self._heads)
        self._by_head = self._store.unflatten(3, self._split).transpose(2, 3)
        self._flat = self._store.view(len(self._blocks), -1, self._width).unbind(0)
        self._values_offset = torch.tensor([0, rows * positions], device=device)
        self._rows = torch.arange(rows, device=device)
        self._window = model.config.attention_window
        unseen = ~attended_positions(positions, self._window, device)
        self._unseen = self._head.new_zeros(positions, positions).masked_fill_(unseen, -torch.inf)
        heads = torch.eye(self._heads, dtype=self._head.dtype, device=device)
        self._scale = 1 / math.sqrt(self._split[1]) if model.config.scaled_attention else 1.0
        self._scaled_heads = heads.repeat_interleave(self._split[1], 1) * self._scale
        self._products = device.type == "cpu" and self._heads <= _PRODUCT_HEADS

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        """Evaluate positions `start..stop` of each row (see `trialogue.oracles.Context`).

        The cost is that of the positions asked for, however ragged they are: only attention is padded. Raises
        `InputError` where `stop` exceeds the capacity.
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
            raise InputError("capacity", self._capacity, f"length {last} needs a larger context")
        if start is not stop and not torch.equal(start, stop):
            self._fill(tokens, start, stop, rows)
        ids = tokens[:, last - 1] if 0 < first == last else self._ids(tokens, stop)
        x = self._embed(ids, stop)
        where = self._where(rows, stop)
        product = self._products and n >= _PRODUCT_ROWS
        attend = self._attend_by_product if product else self._attend_once
        seen = self._seen(first, last)
        stored = self._stored(self._store if product else self._by_head, rows, seen)
        unseen = None if first == last else self._unseen.index_select(0, stop)[:, None, seen]
        kept = {0: x}
        for layer, weights in enumerate(self._blocks):
            q = self._write(layer, weights, x, where)
            x = _attended(weights, x, attend(q, *stored(layer), unseen))
            x = kept[layer + 1] = _fed(weights, self._read(layer, x, rows))
        read = kept[-1] = normed(x, self._final_norm)
        return torch.cat([read, *(kept[layer] for layer in self._layers)], 1) if self._layers else read

    def log_probs(self, features: Tensor) -> Tensor:
        """Log-probabilities (n, data tokens + EOS) of the next token, in float32 (float64 for a float64 model)."""
        logits = F.linear(self.hidden(features, -1), self._head)
        return torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        """Residual stream (n, width) after `layer` blocks; -1 is what the head reads, after the final LayerNorm.

        Raises `InputError` where the context was not opened with that layer.
        """
        if layer == -1:
            return features[:, : self._width] if self._layers else features
        if layer not in self._layers:
            raise InputError("layer", layer, f"not recorded; open the context with layers=({layer},)")
        return features.unflatten(1, (-1, self._width))[:, 1 + self._layers.index(layer)]

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        """Make positions `start..stop` of `rows` those of `source` (both (n,)), as they were before the call."""
        source, rows = source.to(self._rows.device), rows.to(self._rows.device)
        moved = source != rows
        span = self._store[:, :, start : stop + 1]
        span[:, rows[moved]] = span[:, source[moved]]

    def fork(self, rows: Tensor, stop: int) -> AttentionCache:
        """Return an independent context for up to `stop` tokens whose row i starts as this context's row `rows[i]`."""
        return AttentionCache(self._model, len(rows), stop, self._layers, self._forked(rows, stop))

    def _forked(self, rows: Tensor, stop: int) -> Tensor:
        """Keys and values of `rows` (n,), with room for `stop` tokens."""
        store = self._store[:, :, : stop + 1][:, rows.to(self._rows.device)]
        return F.pad(store, (0, 0, 0, stop - self._capacity)) if stop > self._capacity else store

    def _fill(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> None:
        """Write keys and values of positions `start..stop - 1` of each row, packed into one list of positions."""
        pending = (start < stop).nonzero()[:, 0]
        tokens, start, rows = tokens[pending], start[pending], rows[pending]
        counts = stop[pending] - start
        longest, reach = int(counts.max()), int(stop[pending].max())
        seen = self._seen(int(start.min()), reach - 1)
        offsets = torch.arange(longest, device=tokens.device)
        row, offset = (offsets < counts[:, None]).nonzero(as_tuple=True)
        positions = start[row] + offset
        slots = row * longest + offset
        unseen = self._unseen[(start[:, None] + offsets).clamp_max(reach - 1), seen]
        x = self._embed(self._ids(tokens[row], positions), positions)
        where = self._where(rows[row], positions)
        stored = self._stored(self._by_head, rows, seen)
        for layer, weights in enumerate(self._blocks):
            q = self._write(layer, weights, x, where)
            if layer + 1 == len(self._blocks):
                break  # features are those of the last position, which is not among these
            padded = q.new_zeros(len(rows) * longest, self._width).index_copy_(0, slots, q)
            attended = self._attend(padded.view(len(rows), longest, -1), *stored(layer), unseen)
            x = _attended(weights, x, attended.flatten(0, 1).index_select(0, slots))
            x = _fed(weights, self._read(layer, x, rows[row]))

    def _read(self, layer: int, x: Tensor, rows: Tensor) -> Tensor:
        """The residual stream (n, width) after what block `layer` reads besides the prefix of each of `rows` (n,)."""
        del layer, rows
        return x

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """`Transformer.embed` on detached parameters, so that no call records gradients."""
        if self._positions is None:
            return self._model.embed(ids, positions).detach()
        return torch.embedding(self._embedding, ids) + torch.embedding(self._positions, positions)

    def _ids(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Input ids (n,) at `positions` (n,) of `tokens` (n, capacity): BOS, then the tokens."""
        if not tokens.shape[1]:
            return torch.full_like(positions, self._model.bos)
        ids = tokens.gather(1, (positions - 1).clamp_min(0)[:, None])[:, 0]
        return torch.where(positions == 0, self._model.bos, ids)

    def _where(self, rows: Tensor, positions: Tensor) -> Tensor:
        """Where a block's store keeps key and value, in turn, of each position (n,): (2 * n,) flat."""
        return ((rows * (self._capacity + 1) + positions)[:, None] + self._values_offset).view(-1)

    def _write(self, layer: int, weights: _Weights, x: Tensor, where: Tensor) -> Tensor:
        """Store keys and values of the residual stream `x` (n, width); return its queries (n, width)."""
        x = normed(x, weights.attention_norm)
        if x.shape[0] == 1:
            # Of one row queries, keys and values lie in the order in which the store wants the last two.
            parts = linear(x, weights.qkv).view(3, self._width)
            self._flat[layer].index_copy_(0, where, parts[1:])
            return parts[:1]
        keys_values = linear(x, weights.keys_values)
        self._flat[layer].index_copy_(0, where, keys_values.view(-1, self._width))
        return linear(x, weights.queries)

    def _seen(self, first: int, last: int) -> slice:
        """The positions that any of the positions `first..last` attends to."""
        return slice(0 if self._window is None else max(0, first + 1 - self._window), last + 1)

    def _stored(self, store: Tensor, rows: Tensor, seen: slice) -> _Stored:
        """Keys and values (n, ..., seen, ...) of `rows`, by layer; views where the rows are consecutive."""
        n, first = len(rows), int(rows[0])
        store = store.narrow(-2, seen.start, seen.stop - seen.start)
        if n == 1 or torch.equal(rows, self._rows[first : first + n]):
            views = store.narrow(1, first, n).unbind(0)
            return lambda layer: (views[2 * layer], views[2 * layer + 1])
        return lambda layer: (
            store[2 * layer].index_select(0, rows),
            store[2 * layer + 1].index_select(0, rows),
        )

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, unseen: Tensor) -> Tensor:
        """Attention (n, m, width) of queries (n, m, width) over keys and values (n, heads, seen, size of a head).

        `unseen` (n, m, seen) is added to the scores.
        """
        q = q.unflatten(2, self._split).transpose(1, 2)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=unseen[:, None], scale=self._scale)
        return attended.transpose(1, 2).flatten(2)

    def _attend_once(self, q: Tensor, k: Tensor, v: Tensor, unseen: Tensor | None) -> Tensor:
        """`_attend` with one query (n, width) per row; `unseen` is (n, 1, seen), or None where all is attended to."""
        mask = None if unseen is None else unseen[:, None]
        attended = F.scaled_dot_product_attention(
            q.view(-1, self._heads, 1, self._split[1]), k, v, attn_mask=mask, scale=self._scale
        )
        return attended.view(q.shape)

    def _attend_by_product(self, q: Tensor, k: Tensor, v: Tensor, unseen: Tensor | None) -> Tensor:
        """`_attend_once` over keys and values (n, seen, width), all heads of a row in one matrix product."""
        scores = torch.bmm(q[:, None] * self._scaled_heads, k.transpose(1, 2))
        if unseen is not None:
            scores += unseen
        mixed = torch.bmm(scores.softmax(-1), v).unflatten(2, self._split)
        # Every head mixed the values of all heads; its own are on the diagonal.
        return mixed.diagonal(dim1=1, dim2=2).transpose(1, 2).reshape(q.shape)


def normed(x: Tensor, norm: tuple[Tensor, Tensor]) -> Tensor:
    """`x` (n, width) after a LayerNorm (weight, bias)."""
    return torch.layer_norm(x, x.shape[-1:], *norm)


def linear(x: Tensor, parameters: tuple[Tensor, Tensor]) -> Tensor:
    """`x` (n, width) after a linear map (bias, transposed weight)."""
    bias, weight = parameters
    return torch.addmm(bias, x, weight)


def _attended(weights: _Weights, x: Tensor, attended: Tensor) -> Tensor:
    """The residual stream (n, width) after what attention read."""
    return linear(attended, weights.projection).add_(x)


def _fed(weights: _Weights, x: Tensor) -> Tensor:
    """The residual stream (n, width) after the MLP."""
    hidden = linear(normed(x, weights.mlp_norm), weights.up)
    inner = hidden.relu_() if weights.relu else _gelu(hidden)
    return linear(inner, weights.down).add_(x)


def _gelu(x: Tensor) -> Tensor:
    """`gelu(x, approximate="tanh")` of x (n, width), which may be overwritten."""
    if x.shape[0] < _SIGMOID_ROWS or x.device.type != "cpu":
        return F.gelu(x, approximate="tanh")
    # x (1 + tanh(u)) / 2 = x sigmoid(2 u): torch's tanh takes twice as long.
    inner = torch.addcmul(_LINEAR_TERM, x, x, value=0.044715 * _LINEAR_TERM.item())
    return x.mul_(inner.mul_(x).sigmoid_())
