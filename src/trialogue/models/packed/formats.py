"""Formats of packed weights, with their rounding, memory layout and matrix product.

The operators are also used by the compiler of torch. Formats below 32 bits take inputs in bfloat16, accumulate in
float32 and return bfloat16.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError

Product = Callable[[Tensor], Tensor]
"""Function that maps states (n, in_features) to (n, out_features) in the dtype of its format."""

GROUP_SIZE = 32
"""Number of weights of a row that share a scale and an offset in int4."""
_ROWS_AT_ONCE = 4096
# Block sizes of the products. The int8 product reads out of bounds if a row is not a multiple.
_VECTOR = 32
_INT4_ROWS = 16


class Format(NamedTuple):
    """Format in which the weights of a linear layer are packed.

    Attributes:
        name: Name of the format.
        bits: Bits per weight, without scales.
        states: Dtype of the inputs of the product.
        pack: Function that packs a float32 weight (out, in) with a bias (out,) or None, and returns the product.
        round: Function that returns the weight after rounding, in float32.
        fits: Function that returns whether a weight of a given shape can be packed.
    """

    name: str
    bits: int
    states: torch.dtype
    pack: Callable[[Tensor, Tensor | None], Product]
    round: Callable[[Tensor], Tensor]
    fits: Callable[[torch.Size], bool]


def _onednn_layout(dtype: torch.dtype) -> Callable[[Tensor, Tensor | None], Product]:
    def pack(weight: Tensor, bias: Tensor | None) -> Product:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype))
        added = None if bias is None else bias.to(dtype)
        multiply = torch.ops.mkldnn._linear_pointwise.default
        return lambda states: multiply(states, packed, added, "none", [], "")

    return pack


def quantise_int8(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a weight matrix to int8, with one scale per row.

    Args:
        weight: Weight, (out, in) float32.

    Returns:
        Codes (out, in) int8 and scales (out,) bfloat16.
    """
    # Codes are computed from the rounded scale, so that its rounding adds no error. They are clamped, because a scale
    # that is rounded down would map the largest weight beyond the last code.
    scales = (weight.abs().amax(1) / 127).clamp_min(torch.finfo(torch.bfloat16).tiny).bfloat16()
    codes = torch.empty(weight.shape, dtype=torch.int8)
    for rows in torch.arange(len(weight)).split(_ROWS_AT_ONCE):
        scaled = weight[rows] / scales[rows, None].float()
        codes[rows] = scaled.round_().clamp_(-127, 127).to(torch.int8)
    return codes, scales


def _int8_layout(weight: Tensor, bias: Tensor | None) -> Product:
    codes, scales = quantise_int8(weight)
    multiply = torch.ops.aten._weight_int8pack_mm.default
    return _with_bias(lambda states: multiply(states.contiguous(), codes, scales), bias)


def quantise_int4(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a weight matrix to int4, with a scale and an offset per group of 32 weights.

    A weight is represented as (code - 8) * scale + offset. The smallest and largest weight of a group have the codes 0
    and 15, so that weights that already have 16 equidistant values are preserved.

    Args:
        weight: Weight, (out, in) float32.

    Returns:
        Codes (out, in) int32 from 0 to 15, and scales with offsets (in / 32, out, 2) bfloat16.
    """
    groups = weight.view(len(weight), -1, GROUP_SIZE)
    least, greatest = groups.aminmax(dim=2)
    scales = ((greatest - least) / 15).clamp_min(torch.finfo(torch.bfloat16).tiny).bfloat16().float()
    # The center of the codes is between 7 and 8, so that both ends share the error of a rounded scale.
    offsets = ((greatest + least) / 2 + scales / 2).bfloat16().float()
    codes = ((groups - offsets[:, :, None]) / scales[:, :, None] + 8).round_().clamp_(0, 15)
    pairs = torch.stack([scales, offsets], 2).transpose(0, 1).contiguous().bfloat16()
    return codes.to(torch.int32).view(weight.shape), pairs


def _int4_layout(weight: Tensor, bias: Tensor | None) -> Product:
    return make_int4_product(*quantise_int4(weight), bias)


def make_int4_product(codes: Tensor, pairs: Tensor, bias: Tensor | None) -> Product:
    """Return a function that multiplies by an int4 weight, given the result of `quantise_int4`."""
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 2)
    multiply = torch.ops.aten._weight_int4pack_mm_for_cpu.default
    return _with_bias(lambda states: multiply(states.contiguous(), packed, GROUP_SIZE, pairs), bias)


def _round_to_int8(weight: Tensor) -> Tensor:
    codes, scales = quantise_int8(weight)
    return codes.float().mul_(scales.float()[:, None])


def _round_to_int4(weight: Tensor) -> Tensor:
    return dequantise_int4(*quantise_int4(weight))


def dequantise_int4(codes: Tensor, pairs: Tensor) -> Tensor:
    """Return the weight (out, in) in float32, given the result of `quantise_int4`."""
    scales, offsets = pairs.float().transpose(0, 1).unbind(2)
    steps = codes.view(len(codes), -1, GROUP_SIZE).float().sub_(8)
    return steps.mul_(scales[:, :, None]).add_(offsets[:, :, None]).view(codes.shape)


def _with_bias(product: Product, bias: Tensor | None) -> Product:
    if bias is None:
        return product
    added = bias.bfloat16()
    return lambda states: product(states).add_(added)


def _is_multiple_of(rows: int, columns: int) -> Callable[[torch.Size], bool]:
    return lambda shape: shape[0] % rows == 0 and shape[1] % columns == 0


FORMATS = {
    form.name: form
    for form in (
        Format(
            "float32", 32, torch.float32, _onednn_layout(torch.float32), Tensor.float, _is_multiple_of(1, 1)
        ),
        Format(
            "bfloat16",
            16,
            torch.bfloat16,
            _onednn_layout(torch.bfloat16),
            lambda w: w.bfloat16().float(),
            _is_multiple_of(1, 1),
        ),
        Format("int8", 8, torch.bfloat16, _int8_layout, _round_to_int8, _is_multiple_of(1, _VECTOR)),
        Format(
            "int4", 4, torch.bfloat16, _int4_layout, _round_to_int4, _is_multiple_of(_INT4_ROWS, GROUP_SIZE)
        ),
    )
}


@cache
def available_formats() -> tuple[str, ...]:
    """Return the names of the formats that torch supports on this CPU, in the order of `FORMATS`."""
    return tuple(name for name in FORMATS if _is_supported(name))


def _is_supported(name: str) -> bool:
    weight, form = torch.ones(64, 64), FORMATS[name]
    try:
        with torch.inference_mode():
            product = form.pack(weight, None)(torch.ones(2, 64, dtype=form.states))
    # The operator does not exist, or does not support this CPU.
    except (RuntimeError, AttributeError):
        return False
    return torch.equal(product.float(), torch.full((2, 64), 64.0))


def select_fitting_format(name: str, shape: torch.Size) -> Format:
    """Return the format `name`, or the next wider format if `name` does not support a weight of this shape."""
    wider = [form for form in FORMATS.values() if form.bits >= FORMATS[name].bits and form.fits(shape)]
    return min(wider, key=lambda form: form.bits)


def require_format(name: str) -> Format:
    """Return the format `name`, or raise `InputError` if it does not exist or this machine does not support it."""
    supported = ", ".join(available_formats()) or "none; use packed=False"
    if name not in FORMATS:
        raise InputError(
            "weights", name, f"use auto, {', '.join(FORMATS)}; this machine supports {supported}"
        )
    if name not in available_formats():
        hint = f"this processor or this build of torch cannot multiply this format; use one of {supported}"
        raise InputError("weights", name, hint)
    return FORMATS[name]
