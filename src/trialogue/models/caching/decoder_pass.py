"""Fast forward pass of a Llama-like decoder for few rows.

It computes the same function as the model's code in transformers, from the same modules, but with fewer operators,
whose overhead dominates at a single row. If each row has one new token, compiled loops replace all operators except the
matrix products and the activation. The self-check of `PretrainedOracle` verifies that both agree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trialogue.models.caching.decoder_kernels import Floats, add_and_normalise, attend
from trialogue.models.caching.position_cache import PositionLayer
from trialogue.models.packed.linear import PackedLinear

_NO_WEIGHT = np.empty(0, dtype=np.float32)
# With several threads, torch computes the attention of more cached positions in parallel. The loops use one thread.
_MAX_POSITIONS_OF_LOOPS = 256
SUPPORTED_LAYERS = {
    "DecoderLayer", "LlamaDecoderLayer", "MistralDecoderLayer", "Qwen2DecoderLayer", "Qwen3DecoderLayer",
}  # fmt: skip
"""Names of classes whose blocks consist of the same operations, of this package and of transformers."""


class _Norm(NamedTuple):
    """RMS normalisation with a scalar `epsilon`."""

    weight: Tensor
    epsilon: Tensor
    array: Floats
    """The weight, for compiled loops."""

    def __call__(self, states: Tensor) -> Tensor:
        # `rms_norm` takes 1.5 times as long for a single row.
        norm = torch.linalg.vector_norm(states, 2, -1, True)
        inverse = torch.addcmul(self.epsilon, norm, norm, value=1 / states.shape[-1]).rsqrt_()
        return (states * inverse).mul_(self.weight)


class _Layer(NamedTuple):
    """Modules of a layer, collected once because looking up attributes is slow."""

    attention_norm: _Norm
    query: PackedLinear
    key: PackedLinear
    value: PackedLinear
    query_norm: _Norm | None
    key_norm: _Norm | None
    head_norms: tuple[Floats, Floats]
    """Weights of `query_norm` and `key_norm` for compiled loops, empty without them."""
    output: PackedLinear
    mlp_norm: _Norm
    gate: PackedLinear
    activation: nn.Module
    up: PackedLinear
    down: PackedLinear


class DecoderPass:
    """Fast forward pass over the layers of a transformers decoder with packed linear layers.

    Create an instance with `DecoderPass.create`, which checks that the decoder is supported.

    Args:
        body: Decoder without its output head.
    """

    def __init__(self, body: Any) -> None:
        first = body.layers[0].self_attn
        self._body = body
        self._layers = [_layer_modules(layer) for layer in body.layers]
        self._norm = _norm(body.norm)
        self._epsilon = float(self._norm.epsilon)
        self._size, self._scale = first.head_dim, first.scaling
        self._heads = first.q_proj.out_features // self._size
        self._key_heads = first.k_proj.out_features // self._size
        # Linear layers may take bfloat16 inputs. The residual stream, attention and the cache stay in float32.
        self._input_dtype = first.q_proj.states
        self._hooks = [
            hooks for part in body.modules() for hooks in (part._forward_hooks, part._forward_pre_hooks)
        ]

    @classmethod
    def create(cls, body: Any) -> DecoderPass | None:
        """Return the fast forward pass of `body`, or None if a layer is not packed or of an unsupported class."""
        layers = list(getattr(body, "layers", ()))
        if not layers or any(type(layer).__name__ not in SUPPORTED_LAYERS for layer in layers):
            return None
        linear_layers = [
            part for layer in layers for name, part in layer.named_modules() if name.endswith("_proj")
        ]
        if len(linear_layers) != 7 * len(layers) or not all(
            isinstance(part, PackedLinear) for part in linear_layers
        ):
            return None
        # The inputs of several linear layers are converted together, so all layers must take the same dtype.
        return cls(body) if len({part.states for part in linear_layers}) == 1 else None

    def as_loaded(self) -> bool:
        """Return whether this pass may be used: it calls no forward hooks, so no module must have one."""
        return not any(self._hooks)

    def __call__(
        self, ids: Tensor, positions: Tensor, mask: Tensor | None, cache: list[PositionLayer]
    ) -> list[Tensor]:
        """Run a forward pass and store keys and values in `cache`.

        Args:
            ids: Input ids (n, m) int64.
            positions: Position ids (n, m) int64.
            mask: Mask (n, 1, m, reach) float32 that is added to the attention scores. None for no mask.
            cache: Cache layers, set to the positions of this pass.

        Returns:
            The residual streams (n, m, width) before each block, followed by the final normalised states.
        """
        (n, m), size, heads = ids.shape, self._size, self._heads
        if m == 1 and self._can_loop(cache[0]):
            return self._run_single_tokens(ids, positions, cache)
        stream = self._body.embed_tokens(ids)
        cos, sin = self._body.rotary_emb(stream, positions)
        width = stream.shape[2]
        # The rotary embedding is x cos + rotate_half(x) sin. The sign of `rotate_half` is moved into `sin`.
        sin = torch.cat([-sin[..., : size // 2], sin[..., size // 2 :]], -1).view(n * m, 1, size)
        cos = cos.view(n * m, 1, size)
        stream, streams = stream.view(n * m, width), []
        for layer, store in zip(self._layers, cache, strict=True):
            streams.append(stream.view(n, m, width))
            states = layer.attention_norm(stream).to(self._input_dtype)
            query, key = layer.query.multiply(states), layer.key.multiply(states)
            if layer.query_norm is not None and layer.key_norm is not None:
                query = layer.query_norm(query.float().view(n * m, -1, size)).view(n * m, -1)
                key = layer.key_norm(key.float().view(n * m, -1, size)).view(n * m, -1)
            rotated = torch.cat([query, key], 1).float().view(n * m, -1, size)
            rotated = torch.addcmul(rotated * cos, rotated.roll(size // 2, -1), sin).view(n, m, -1, size)
            values = layer.value.multiply(states).float().view(n, m, -1, size)
            keys, values = store.update(rotated[:, :, heads:].transpose(1, 2), values.transpose(1, 2))
            attended = self._attend(rotated[:, :, :heads], keys, values, mask)
            stream = stream + layer.output.multiply(attended.view(n * m, -1).to(self._input_dtype))
            states = layer.mlp_norm(stream).to(self._input_dtype)
            gate = layer.activation(layer.gate.multiply(states))
            stream = stream + layer.down.multiply(gate.mul_(layer.up.multiply(states)))
        return [*streams, self._norm(stream).view(n, m, width)]

    def _can_loop(self, store: PositionLayer) -> bool:
        """Return whether compiled loops can compute this pass, and are faster than operators of torch."""
        if not store.is_initialized or store.place is None:
            return False
        return (
            torch.get_num_threads() == 1
            or store.place.positions.numel() * store.place.reach <= _MAX_POSITIONS_OF_LOOPS
        )

    def _run_single_tokens(self, ids: Tensor, positions: Tensor, cache: list[PositionLayer]) -> list[Tensor]:
        """Run a forward pass on one token (n, 1) of each row, and return the same as `__call__`."""
        place, n, dtype = cache[0].place, len(ids), self._input_dtype
        assert place is not None
        is_half, epsilon, shape = dtype == torch.bfloat16, self._epsilon, tuple(cache[0].keys.shape)
        rows, stored_at = (
            np.ascontiguousarray(place.rows.numpy()),
            np.ascontiguousarray(place.positions.numpy()[:, 0]),
        )
        embedded = self._body.embed_tokens(ids)
        cosines, sines = (angles.numpy()[:, 0] for angles in self._body.rotary_emb(embedded, positions))
        streams = torch.empty(len(cache) + 1, n, embedded.shape[2])
        streams[0] = embedded[:, 0]
        stream, middle = streams.numpy(), np.empty((n, embedded.shape[2]), dtype=np.float32)
        states, attended = (
            torch.empty(n, embedded.shape[2], dtype=dtype),
            torch.empty(n, self._heads * self._size, dtype=dtype),
        )
        states_at, attended_at = states.data_ptr(), attended.data_ptr()
        add_and_normalise(
            stream[0], 0, is_half, self._layers[0].attention_norm.array, epsilon, stream[0], states_at
        )
        for index, (layer, store) in enumerate(zip(self._layers, cache, strict=True)):
            # The products must stay referenced, because the loops read them by address.
            query, key, value = (part.multiply(states) for part in (layer.query, layer.key, layer.value))
            attend(
                (query.data_ptr(), key.data_ptr(), value.data_ptr()),
                is_half,
                layer.head_norms,
                epsilon,
                cosines,
                sines,
                (store.keys.data_ptr(), store.values.data_ptr()),
                shape,
                rows,
                stored_at,
                self._scale,
                self._heads,
                attended_at,
            )
            output = layer.output.multiply(attended)
            add_and_normalise(
                stream[index], output.data_ptr(), is_half, layer.mlp_norm.array, epsilon, middle, states_at
            )
            gate = layer.activation(layer.gate.multiply(states))
            output = layer.down.multiply(gate.mul_(layer.up.multiply(states)))
            following = self._norm if index + 1 == len(cache) else self._layers[index + 1].attention_norm
            add_and_normalise(
                middle, output.data_ptr(), is_half, following.array, epsilon, stream[index + 1], states_at
            )
        return [*streams[:-1, :, None].unbind(0), self._norm(streams[-1]).view(n, 1, -1)]

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Return attention of queries (n, m, heads, size) over keys and values (n, key-value heads, reach, size)."""
        n, m = queries.shape[:2]
        if m == 1:
            # Query heads that share keys are passed as several queries of one head, so keys are not repeated.
            queries = queries.reshape(n, self._key_heads, -1, self._size)
            return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=self._scale)
        attended = F.scaled_dot_product_attention(
            queries.transpose(1, 2), keys, values, attn_mask=mask, scale=self._scale, enable_gqa=True
        )
        return attended.transpose(1, 2).contiguous()


def _norm(module: Any) -> _Norm:
    weight = module.weight.detach()
    return _Norm(weight, torch.tensor(module.variance_epsilon), weight.numpy())


def _layer_modules(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    query_norm, key_norm = (
        None if (module := getattr(attention, name, None)) is None else _norm(module)
        for name in ("q_norm", "k_norm")
    )
    query_weight, key_weight = (_NO_WEIGHT if norm is None else norm.array for norm in (query_norm, key_norm))
    return _Layer(
        _norm(layer.input_layernorm),
        attention.q_proj,
        attention.k_proj,
        attention.v_proj,
        query_norm,
        key_norm,
        (query_weight, key_weight),
        attention.o_proj,
        _norm(layer.post_attention_layernorm),
        mlp.gate_proj,
        mlp.act_fn,
        mlp.up_proj,
        mlp.down_proj,
    )
