"""Choice of the codes in which OpenVINO stores the weights of a model."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from trialogue.errors import InputError
from trialogue.models.openvino.codes import (
    Codes,
    float_codes,
    int4_codes,
    int8_codes,
    recovered_codes,
    stored_codes,
)
from trialogue.models.openvino.decoder import Encode
from trialogue.models.packed.gguf_blocks import GgufBlocks

FORMATS = ("auto", "float32", "int8", "int4")
"""Formats of weights that are floats. The 4-bit and 8-bit codes of a GGUF file are kept in every format."""


def require_format(weights: str) -> None:
    """Raise `InputError` if the format `weights` does not exist."""
    if weights not in FORMATS:
        raise InputError("weights", weights, f"the kind openvino has the formats {', '.join(FORMATS)}")


def make_encoder(weights: str, blocks: Mapping[nn.Module, GgufBlocks], *, recover: bool) -> Encode:
    """Return a function that returns the codes of a linear layer.

    Args:
        weights: Format of the weights, except "auto". In int4, the output head has 8 bits, because no later layer
            corrects its rounding errors.
        blocks: Weights of the layers in a GGUF file.
        recover: Keep float weights that have been dequantised from 4 or 8 bits as the codes of these bits.
    """

    def encode(layer: nn.Linear, is_head: bool) -> Codes:
        stored = blocks.get(layer)
        if stored is not None and stored.quantised:
            codes = stored_codes(stored)
            if codes is not None:
                return codes
        weight = layer.weight.detach() if stored is None or not layer.weight.is_meta else stored.weight()
        source = "" if stored is None else f" of {stored.kind.name}"
        codes = recovered_codes(weight.float(), source) if recover else None
        return codes if codes is not None else _encode(weight.float(), weights, is_head, source)

    return encode


def _encode(weight: Tensor, weights: str, is_head: bool, source: str) -> Codes:
    if weights == "float32":
        return float_codes(weight, f"float32{source}")
    rounded = f" rounded from{source.removeprefix(' of')}" if source else ""
    codes = int4_codes(weight, f"int4{rounded}") if weights == "int4" and not is_head else None
    return codes or int8_codes(weight, f"int8{rounded}")
