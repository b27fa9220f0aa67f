"""The pass of a Llama-like decoder with the fewest operators: at one row, calling them takes longer than most of them.

It computes what the model's own code in transformers does, from the same modules: packed linear layers, the weights of
the norms, the rotary embedding. Whether it does is not believed but tried, by the self-check of `PretrainedOracle`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.models.caching.position_cache import PositionLayer
from trialogue.models.packed.linear import PackedLinear

_KNOWN = {"LlamaDecoderLayer", "MistralDecoderLayer", "Qwen2DecoderLayer", "Qwen3DecoderLayer"}


class _Norm(NamedTuple):
    """Division by the root mean square, with `epsilon` (scalar) under the root, and multiplication by `weight`."""

    weight: Tensor
    epsilon: Tensor

    def __call__(self, states: Tensor) -> Tensor:
        # `rms_norm` takes half as long again for one row.
        norm = torch.linalg.vector_norm(states, 2, -1, True)
        inverse = torch.addcmul(self.epsilon, norm, norm, value=1 / states.shape[-1]).rsqrt_()
        return (states * inverse).mul_(self.weight)


class _Layer(NamedTuple):
    """Parts of a layer: looking them up in modules takes as long as using them on one row."""

    attention_norm: _Norm
    query: PackedLinear
    key: PackedLinear
    value: PackedLinear
    query_norm: _Norm | None
    key_norm: _Norm | None
    output: PackedLinear
    mlp_norm: _Norm
    gate: PackedLinear
    activation: nn.Module
    up: PackedLinear
    down: PackedLinear


class DecoderPass:
    """The layers of a decoder `body` of transformers, whose linear layers are packed; `DecoderPass.of` makes one."""

    def __init__(self, body: Any) -> None:
        first = body.layers[0].self_attn
        self._body = body
        self._layers = [_parts(layer) for layer in body.layers]
        self._norm = _norm(body.norm)
        self._size, self._scale = first.head_dim, first.scaling
        self._heads = first.q_proj.out_features // self._size
        self._shared = first.k_proj.out_features // self._size
        # Of bfloat16 queries and values the residual stream, attention and cache stay in float32.
        self._states = first.q_proj.states
        self._hooks = [
            hooks for part in body.modules() for hooks in (part._forward_hooks, part._forward_pre_hooks)
        ]

    @classmethod
    def of(cls, body: Any) -> DecoderPass | None:
        """The pass of `body`; None where its layers are of an unknown kind, or not all packed."""
        layers = list(getattr(body, "layers", ()))
        if not layers or any(type(layer).__name__ not in _KNOWN for layer in layers):
            return None
        linear = [part for layer in layers for name, part in layer.named_modules() if name.endswith("_proj")]
        if len(linear) != 7 * len(layers) or not all(isinstance(part, PackedLinear) for part in linear):
            return None
        # States are converted once for all layers that read them.
        return cls(body) if len({part.states for part in linear}) == 1 else None

    def as_loaded(self) -> bool:
        """Whether no module of the model calls a hook, which this pass would not."""
        return not any(self._hooks)

    def __call__(
        self, ids: Tensor, positions: Tensor, mask: Tensor | None, cache: list[PositionLayer]
    ) -> list[Tensor]:
        """The residual stream (n, m, width) before each block, and at last the normed one after all of them.

        `ids` and `positions` are (n, m) int64; `mask` (n, 1, m, reach) float32 is added to the scores, None where every
        token attends to all that the places of the `cache` reach.
        """
        (n, m), size, heads = ids.shape, self._size, self._heads
        stream = self._body.embed_tokens(ids)
        cos, sin = self._body.rotary_emb(stream, positions)
        width = stream.shape[2]
        # x cos + rotate_half(x) sin, with the sign of the half that is turned over in the table.
        sin = torch.cat([-sin[..., : size // 2], sin[..., size // 2 :]], -1).view(n * m, 1, size)
        cos = cos.view(n * m, 1, size)
        stream, streams = stream.view(n * m, width), []
        for layer, store in zip(self._layers, cache, strict=True):
            streams.append(stream.view(n, m, width))
            states = layer.attention_norm(stream).to(self._states)
            query, key = layer.query.multiply(states), layer.key.multiply(states)
            if layer.query_norm is not None and layer.key_norm is not None:
                query = layer.query_norm(query.float().view(n * m, -1, size)).view(n * m, -1)
                key = layer.key_norm(key.float().view(n * m, -1, size)).view(n * m, -1)
            both = torch.cat([query, key], 1).float().view(n * m, -1, size)
            both = torch.addcmul(both * cos, both.roll(size // 2, -1), sin).view(n, m, -1, size)
            values = layer.value.multiply(states).float().view(n, m, -1, size)
            keys, values = store.update(both[:, :, heads:].transpose(1, 2), values.transpose(1, 2))
            attended = self._attend(both[:, :, :heads], keys, values, mask)
            stream = stream + layer.output.multiply(attended.view(n * m, -1).to(self._states))
            states = layer.mlp_norm(stream).to(self._states)
            gate = layer.activation(layer.gate.multiply(states))
            stream = stream + layer.down.multiply(gate.mul_(layer.up.multiply(states)))
        return [*streams, self._norm(stream).view(n, m, width)]

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Attention of `queries` (n, m, heads, size) over `keys` and `values` (n, shared heads, reach, size)."""
        n, m = queries.shape[:2]
        if m == 1:
            # Heads that share keys are as many queries of one head: nothing is repeated.
            queries = queries.reshape(n, self._shared, -1, self._size)
            return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=self._scale)
        attended = F.scaled_dot_product_attention(
            queries.transpose(1, 2), keys, values, attn_mask=mask, scale=self._scale, enable_gqa=True
        )
        return attended.transpose(1, 2).contiguous()


def _norm(module: Any) -> _Norm:
    return _Norm(module.weight.detach(), torch.tensor(module.variance_epsilon))


def _parts(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    query_norm, key_norm = (getattr(attention, name, None) for name in ("q_norm", "k_norm"))
    return _Layer(
        _norm(layer.input_layernorm),
        attention.q_proj,
        attention.k_proj,
        attention.v_proj,
        None if query_norm is None else _norm(query_norm),
        None if key_norm is None else _norm(key_norm),
        attention.o_proj,
        _norm(layer.post_attention_layernorm),
        mlp.gate_proj,
        mlp.act_fn,
        mlp.up_proj,
        mlp.down_proj,
    )
