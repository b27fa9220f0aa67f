"""Graphs of a Llama-like decoder for OpenVINO, with compressed weights and paged attention.

The patterns of operators are those that OpenVINO fuses: RMS normalisation, the rotary embedding, and the decoding of
weights inside of the matrix product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trialogue.errors import InputError
from trialogue.extras import from_extra
from trialogue.models.openvino.codes import Codes
from trialogue.models.openvino.decoder import Block, Decoder, Linear, concatenate
from trialogue.models.openvino.paged_cache import BLOCK_SIZE

SEQUENCE_INPUTS = ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins")
"""Inputs (n,) int32 of paged attention, with the names in the models of OpenVINO GenAI."""


class DecoderGraph:
    """Builder of the graphs of a decoder.

    Args:
        decoder: Sizes and weights.

    Raises:
        InputError: If OpenVINO is not installed.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._ov = from_extra("openvino", "openvino")
        self._ops = from_extra("openvino.opset15", "openvino")
        self._inputs: list[Any] = []

    def head(self) -> Any:
        """Return the graph of the output head, from hidden states (n, width) to logits (n, vocab)."""
        self._inputs = []
        states = self._input("states", [-1, self._decoder.norm.shape[0]], np.float32)
        return self._model([self._linear(states, self._decoder.head)])

    def body(self, layers: Sequence[int] = ()) -> Any:
        """Return the graph of the decoder without its head.

        Its inputs are the embeddings (tokens, width) of the new tokens of all rows, the `cosines` and `sines` (tokens,
        head size) of their positions, the inputs of paged attention, and the indices `last` (n,) of the tokens whose
        states are returned. Keys and values are written to the inputs `key_cache.i` and `value_cache.i`.

        Args:
            layers: Numbers of blocks after which the residual streams are also returned, at most all but the last.

        Returns:
            Graph whose outputs are the input (n, width) of the head, and the residual stream (n, width) after each of
            `layers`.
        """
        ops, decoder, self._inputs = self._ops, self._decoder, []
        stream = self._input("embeddings", [-1, decoder.norm.shape[0]], np.float32)
        last = self._input("last", [-1], np.int32)
        rotation = [
            ops.unsqueeze(self._input(name, [-1, decoder.head_size], np.float32), _ints(ops, [1, 2]))
            for name in ("cosines", "sines")
        ]
        sequences = [self._input(name, [-1], np.int32) for name in SEQUENCE_INPUTS]
        longest = self._input("max_context_len", [], np.int32)
        streams = [stream]
        for number, block in enumerate(decoder.blocks):
            caches = [
                self._input(
                    f"{kind}_cache.{number}",
                    [-1, decoder.key_heads, BLOCK_SIZE, decoder.head_size],
                    np.float32,
                )
                for kind in ("key", "value")
            ]
            states = self._norm(stream, block.attention_norm)
            query, key, value = self._project(states, block)
            query = self._rotate(query, decoder.heads, block.query_norm, rotation)
            key = self._rotate(key, decoder.key_heads, block.key_norm, rotation)
            attended = self._attend([query, key, value, *caches, *sequences], longest)
            stream = ops.add(stream, self._linear(attended, block.output))
            states = self._norm(stream, block.mlp_norm)
            gate = ops.swish(self._linear(states, block.gate))
            stream = ops.add(
                stream, self._linear(ops.multiply(gate, self._linear(states, block.up)), block.down)
            )
            streams.append(stream)
        recorded = [ops.gather(streams[layer], last, _ints(ops, 0)) for layer in layers]
        return self._model([self._norm(ops.gather(stream, last, _ints(ops, 0)), decoder.norm), *recorded])

    def _project(self, states: Any, block: Block) -> Sequence[Any]:
        """Return queries, keys and values, from one product if their weights have the same layout."""
        layers = (block.query, block.key, block.value)
        joined = concatenate(layers)
        if joined is None:
            return [self._linear(states, layer) for layer in layers]
        sizes = [layer.codes.codes.shape[0] for layer in layers]
        product = self._linear(states, joined)
        return self._ops.variadic_split(product, _ints(self._ops, -1), _ints(self._ops, sizes)).outputs()

    def _rotate(self, states: Any, heads: int, norm: Any, rotation: Sequence[Any]) -> Any:
        """Apply the normalisation of each head, if any, and the rotary embedding to states (tokens, heads * size)."""
        ops, size = self._ops, self._decoder.head_size
        split = ops.reshape(states, _ints(ops, [-1, 1, heads, size]), False)
        if norm is not None:
            split = self._norm(split, norm)
        split = ops.transpose(split, _ints(ops, [0, 2, 1, 3]))
        first, second = ops.variadic_split(split, _ints(ops, 3), _ints(ops, [size // 2, size // 2])).outputs()
        exchanged = ops.concat([ops.multiply(second, _floats(ops, [[[[-1.0]]]])), first], -1)
        cosines, sines = rotation
        rotated = ops.add(ops.multiply(split, cosines), ops.multiply(exchanged, sines))
        rotated = ops.transpose(rotated, _ints(ops, [0, 2, 1, 3]))
        return ops.reshape(rotated, _ints(ops, [-1, heads * size]), False)

    def _attend(self, inputs: Sequence[Any], longest: Any) -> Any:
        ops, decoder = self._ops, self._decoder
        no_floats, no_ints = _floats(ops, []), ops.constant(np.array([], np.int32))
        zero = ops.constant(np.array(0, np.int32))
        # The other inputs belong to features that are not used: sliding windows, ALiBi, score aggregation, cache
        # rotation, XAttention, sinks, adaptive eviction, token types and the bias of speculative trees.
        arguments = [
            *(*inputs, _floats(ops, decoder.scale), zero, no_floats, longest, no_ints),
            *(no_ints, ops.constant(np.zeros((0, 0), np.int32)), ops.constant(np.zeros((0, 0), np.float32))),
            *(no_floats, zero, zero, no_floats, zero, no_ints, no_ints, no_ints),
            *(no_ints, ops.constant(np.array([], np.uint8)), no_ints),
        ]
        outputs = [node if isinstance(node, self._ov.Output) else node.output(0) for node in arguments]
        extension: Any = getattr(from_extra("openvino.op", "openvino"), "_PagedAttentionExtension", None)
        try:
            attention = extension(outputs)
        except (TypeError, RuntimeError) as error:
            hint = (
                "its paged attention has other inputs. Use a tested version: pip install openvino==2026.4.1"
            )
            raise InputError("package", f"openvino {self._ov.__version__}", hint) from error
        for kind in ("k", "v"):
            attention.get_rt_info()[f"{kind}_head_size"] = decoder.head_size
            attention.get_rt_info()[f"num_{kind}_heads"] = decoder.key_heads
        return attention.output(0)

    def _linear(self, states: Any, layer: Linear) -> Any:
        product = self._ops.matmul(states, self._weight(layer.codes), False, True)
        return product if layer.bias is None else self._ops.add(product, _floats(self._ops, layer.bias[None]))

    def _weight(self, codes: Codes) -> Any:
        ops, (values, scales, zeros, *_) = self._ops, codes
        if scales is None:
            return ops.constant(values)
        has_groups = scales.shape[1] > 1
        shape = [*scales.shape, values.shape[1] // scales.shape[1]] if has_groups else list(values.shape)
        if values.dtype == np.uint8:
            packed = np.ascontiguousarray(values[:, ::2] | (values[:, 1::2] << 4))
            # The constant must copy the codes, because its tensor does not own their memory.
            node = ops.constant(self._ov.Tensor(packed, shape, self._ov.Type.u4), False)
        else:
            node = ops.constant(values.reshape(shape))
        weight = ops.convert(node, "f32")
        by_group = [*scales.shape, 1] if has_groups else list(scales.shape)
        if zeros is not None:
            weight = ops.subtract(weight, _floats(ops, zeros.reshape(by_group)))
        weight = ops.multiply(weight, _floats(ops, scales.reshape(by_group)))
        return ops.reshape(weight, _ints(ops, values.shape), False) if has_groups else weight

    def _norm(self, states: Any, weight: Any) -> Any:
        """Apply RMS normalisation to the last axis."""
        ops = self._ops
        mean = ops.reduce_mean(ops.power(states, _floats(ops, 2.0)), _ints(ops, [-1]), True)
        root = ops.sqrt(ops.add(mean, _floats(ops, self._decoder.epsilon)))
        scaled = ops.multiply(states, ops.divide(_floats(ops, 1.0), root))
        return ops.multiply(scaled, _floats(ops, weight))

    def _input(self, name: str, shape: Sequence[int], dtype: Any) -> Any:
        node = self._ops.parameter(list(shape), dtype, name=name)
        node.output(0).get_tensor().set_names({name})
        self._inputs.append(node)
        return node

    def _model(self, outputs: Sequence[Any]) -> Any:
        return self._ov.Model([self._ops.result(output) for output in outputs], self._inputs, "decoder")


def _ints(ops: Any, values: Any) -> Any:
    return ops.constant(np.array(values, np.int64))


def _floats(ops: Any, values: Any) -> Any:
    return ops.constant(np.array(values, np.float32))
