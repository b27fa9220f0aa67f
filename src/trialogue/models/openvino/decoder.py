"""Weights of a Llama-like decoder, read from a model of transformers or from the blocks of a GGUF file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.caching.decoder_pass import SUPPORTED_LAYERS
from trialogue.models.openvino.codes import Codes

Encode = Callable[[nn.Linear, bool], Codes]
"""Function that returns the codes of a linear layer, given whether it is the output head."""

_STATIC_ROTATIONS = {"default", "linear", "llama3", "yarn"}


class Linear(NamedTuple):
    """Linear layer with a weight (out, in) and a bias (out,) or None."""

    codes: Codes
    bias: NDArray[np.float32] | None


class Block(NamedTuple):
    """Layers of a decoder block. The normalisations of queries and keys are None if the block has none."""

    attention_norm: NDArray[np.float32]
    query: Linear
    key: Linear
    value: Linear
    query_norm: NDArray[np.float32] | None
    key_norm: NDArray[np.float32] | None
    output: Linear
    mlp_norm: NDArray[np.float32]
    gate: Linear
    up: Linear
    down: Linear


class Decoder(NamedTuple):
    """Sizes and weights of a decoder.

    Attributes:
        heads: Number of query heads.
        key_heads: Number of key and value heads.
        head_size: Width of a head.
        scale: Factor of the attention scores.
        epsilon: Constant of the RMS normalisations.
        blocks: Blocks of the decoder.
        norm: Weight of the last normalisation.
        head: Output head.
    """

    heads: int
    key_heads: int
    head_size: int
    scale: float
    epsilon: float
    blocks: list[Block]
    norm: NDArray[np.float32]
    head: Linear

    def linear_layers(self) -> Iterator[Linear]:
        """Yield all linear layers."""
        yield self.head
        for block in self.blocks:
            yield from (part for part in block if isinstance(part, Linear))

    def is_exact(self) -> bool:
        """Return whether no weight has been rounded."""
        return all(layer.codes.is_exact for layer in self.linear_layers())

    def describe_formats(self) -> str:
        """Describe the formats of the linear layers, with the fraction of the weights in each."""
        shares: Counter[str] = Counter()
        for layer in self.linear_layers():
            shares[layer.codes.origin] += layer.codes.codes.size
        total = shares.total()
        return ", ".join(f"{origin} ({share / total:.0%})" for origin, share in shares.most_common())


def require_supported(model: Any, name: str) -> None:
    """Raise `InputError` with the reason if the graph of OpenVINO cannot represent a model of transformers."""
    reason = next(_unsupported_parts(model), None)
    if reason is not None:
        hint = f"the kind openvino does not support {reason}. Load the model without `openvino:`"
        raise InputError("model", name, hint)


def _unsupported_parts(model: Any) -> Iterator[str]:
    body, config = model.base_model, model.config.get_text_config(decoder=True)
    layers = list(getattr(body, "layers", ()))
    kinds = sorted({type(layer).__name__ for layer in layers} - SUPPORTED_LAYERS)
    if kinds or not layers:
        yield f"its layers ({kinds[0] if kinds else 'none'}), only {', '.join(sorted(SUPPORTED_LAYERS))}"
        return
    head = model.get_output_embeddings()
    if type(head) is not nn.Linear:
        yield f"its output head ({type(head).__name__}), only a linear layer"
    if config.hidden_act != "silu":
        yield f"its activation ({config.hidden_act}), only silu"
    rotation = getattr(body.rotary_emb, "rope_type", "default")
    if rotation not in _STATIC_ROTATIONS:
        yield f"its rotary embedding ({rotation}), only {', '.join(sorted(_STATIC_ROTATIONS))}"
    if rotary_table(body.rotary_emb, 1).shape[2] != layers[0].self_attn.head_dim:
        yield "a rotary embedding of a part of each head"


def rotary_table(rotary: nn.Module, positions: int) -> Tensor:
    """Return the cosines and sines (2, positions, head size) float32 of a rotary embedding."""
    with torch.inference_mode(False), torch.no_grad():
        return torch.cat(rotary(torch.zeros(1), torch.arange(positions)[None]))


def read_decoder(model: Any, encode: Encode) -> Decoder:
    """Read the weights of a supported model (`require_supported`), whose linear layers may lack weights.

    Args:
        model: Causal language model of transformers.
        encode: Function that returns the codes of each linear layer.
    """
    body = model.base_model
    first, head = body.layers[0].self_attn, model.get_output_embeddings()

    def linear(layer: nn.Linear) -> Linear:
        return Linear(encode(layer, layer is head), None if layer.bias is None else _array(layer.bias))

    return Decoder(
        first.q_proj.out_features // first.head_dim,
        first.k_proj.out_features // first.head_dim,
        first.head_dim,
        first.scaling,
        body.norm.variance_epsilon,
        [_read_block(layer, linear) for layer in body.layers],
        _array(body.norm.weight),
        linear(head),
    )


def _read_block(layer: Any, linear: Callable[[nn.Linear], Linear]) -> Block:
    attention, mlp = layer.self_attn, layer.mlp
    norms = (getattr(attention, name, None) for name in ("q_norm", "k_norm"))
    query_norm, key_norm = (None if norm is None else _array(norm.weight) for norm in norms)
    return Block(
        _array(layer.input_layernorm.weight),
        linear(attention.q_proj),
        linear(attention.k_proj),
        linear(attention.v_proj),
        query_norm,
        key_norm,
        linear(attention.o_proj),
        _array(layer.post_attention_layernorm.weight),
        linear(mlp.gate_proj),
        linear(mlp.up_proj),
        linear(mlp.down_proj),
    )


def concatenate(layers: Iterable[Linear]) -> Linear | None:
    """Return a layer with the outputs of all `layers`, or None if their codes have different types."""
    parts = list(layers)
    codes = [part.codes for part in parts]
    layouts = {
        (c.codes.dtype, None if c.scales is None else c.scales.shape[1], c.zeros is None) for c in codes
    }
    if len(layouts) > 1 or len({part.bias is None for part in parts}) > 1:
        return None
    arrays = [_joined([getattr(c, field) for c in codes]) for field in ("codes", "scales", "zeros")]
    return Linear(
        codes[0]._replace(codes=arrays[0], scales=arrays[1], zeros=arrays[2]),
        _joined([part.bias for part in parts]),
    )


def _joined(arrays: list[Any]) -> Any:
    return None if arrays[0] is None else np.concatenate(arrays)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return tensor.detach().float().numpy()
