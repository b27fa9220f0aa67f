"""The formats of packed weights: how a weight is rounded and laid out, and the product with it.

The operators are those that torch's own compiler emits. Products of formats below 32 bits multiply states in bfloat16,
add in float32 and answer in bfloat16.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.errors import InputError

Product = Callable[[Tensor], Tensor]
"""Maps states (n, in) to (n, out), in the type of its format."""

GROUP_SIZE = 32
"""Weights of a row that share a scale and an offset in int4."""
_ROWS_AT_ONCE = 4096
# What the products take at a time. That with int8 reads beyond a shorter row without a word.
_VECTOR = 32
_INT4_ROWS = 16


class Format(NamedTuple):
    """A format of weights by its `name`.

    `states` is the type of what its product multiplies, `lay` makes the product of a weight (out, in) in float32 with a
    bias (out,) or None, `rounded` gives the weight that the format keeps, in float32, and `fits` says whether a weight
    of a shape can be laid out so. `bits` counts those of a weight, shares of scales left out.
    """

    name: str
    bits: int
    states: torch.dtype
    lay: Callable[[Tensor, Tensor | None], Product]
    rounded: Callable[[Tensor], Tensor]
    fits: Callable[[torch.Size], bool]


def _one_dnn(dtype: torch.dtype) -> Callable[[Tensor, Tensor | None], Product]:
    def lay(weight: Tensor, bias: Tensor | None) -> Product:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.to(dtype))
        added = None if bias is None else bias.to(dtype)
        multiply = torch.ops.mkldnn._linear_pointwise.default
        return lambda states: multiply(states, packed, added, "none", [], "")

    return lay


def int8_codes(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Codes (out, in) int8 and scales (out,) bfloat16 whose product is nearest to `weight` (out, in)."""
    # Codes are of the scale as it is kept, so that its rounding makes no error of its own. One that is rounded down
    # would send the greatest weight beyond the last code.
    scales = (weight.abs().amax(1) / 127).clamp_min(torch.finfo(torch.bfloat16).tiny).bfloat16()
    codes = torch.empty(weight.shape, dtype=torch.int8)
    for rows in torch.arange(len(weight)).split(_ROWS_AT_ONCE):
        scaled = weight[rows] / scales[rows, None].float()
        codes[rows] = scaled.round_().clamp_(-127, 127).to(torch.int8)
    return codes, scales


def _int8(weight: Tensor, bias: Tensor | None) -> Product:
    codes, scales = int8_codes(weight)
    multiply = torch.ops.aten._weight_int8pack_mm.default
    return _with_bias(lambda states: multiply(states.contiguous(), codes, scales), bias)


def int4_codes(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Codes (out, in) int32 in 0..15, and scales and offsets (in / 32, out, 2) bfloat16, for `weight` (out, in).

    A weight is (code - 8) * scale + offset, of its group's; a group's least and greatest weight have the codes 0 and
    15, so that weights that were rounded to 16 even steps before keep their steps.
    """
    groups = weight.view(len(weight), -1, GROUP_SIZE)
    least, greatest = groups.aminmax(dim=2)
    scales = ((greatest - least) / 15).clamp_min(torch.finfo(torch.bfloat16).tiny).bfloat16().float()
    # The middle of the codes is between 7 and 8: the error of a rounded scale is shared by both ends.
    offsets = ((greatest + least) / 2 + scales / 2).bfloat16().float()
    codes = ((groups - offsets[:, :, None]) / scales[:, :, None] + 8).round_().clamp_(0, 15)
    pairs = torch.stack([scales, offsets], 2).transpose(0, 1).contiguous().bfloat16()
    return codes.to(torch.int32).view(weight.shape), pairs


def _int4(weight: Tensor, bias: Tensor | None) -> Product:
    return int4_product(*int4_codes(weight), bias)


def int4_product(codes: Tensor, pairs: Tensor, bias: Tensor | None) -> Product:
    """The product of the weight that `codes` and `pairs` (as of `int4_codes`) stand for."""
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 2)
    multiply = torch.ops.aten._weight_int4pack_mm_for_cpu.default
    return _with_bias(lambda states: multiply(states.contiguous(), packed, GROUP_SIZE, pairs), bias)


def _int8_rounded(weight: Tensor) -> Tensor:
    codes, scales = int8_codes(weight)
    return codes.float().mul_(scales.float()[:, None])


def _int4_rounded(weight: Tensor) -> Tensor:
    return int4_weight(*int4_codes(weight))


def int4_weight(codes: Tensor, pairs: Tensor) -> Tensor:
    """The weight (out, in) float32 that `codes` and `pairs` (as of `int4_codes`) stand for."""
    scales, offsets = pairs.float().transpose(0, 1).unbind(2)
    steps = codes.view(len(codes), -1, GROUP_SIZE).float().sub_(8)
    return steps.mul_(scales[:, :, None]).add_(offsets[:, :, None]).view(codes.shape)


def _with_bias(product: Product, bias: Tensor | None) -> Product:
    if bias is None:
        return product
    added = bias.bfloat16()
    return lambda states: product(states).add_(added)


def _divides(rows: int, columns: int) -> Callable[[torch.Size], bool]:
    return lambda shape: shape[0] % rows == 0 and shape[1] % columns == 0


FORMATS = {
    form.name: form
    for form in (
        Format("float32", 32, torch.float32, _one_dnn(torch.float32), Tensor.float, _divides(1, 1)),
        Format(
            "bfloat16",
            16,
            torch.bfloat16,
            _one_dnn(torch.bfloat16),
            lambda w: w.bfloat16().float(),
            _divides(1, 1),
        ),
        Format("int8", 8, torch.bfloat16, _int8, _int8_rounded, _divides(1, _VECTOR)),
        Format("int4", 4, torch.bfloat16, _int4, _int4_rounded, _divides(_INT4_ROWS, GROUP_SIZE)),
    )
}


@cache
def available() -> tuple[str, ...]:
    """The formats that this build of torch multiplies on this processor, in the order of `FORMATS`."""
    return tuple(name for name in FORMATS if _runs(name))


def _runs(name: str) -> bool:
    weight, form = torch.ones(64, 64), FORMATS[name]
    try:
        with torch.inference_mode():
            answer = form.lay(weight, None)(torch.ones(2, 64, dtype=form.states))
    except (RuntimeError, AttributeError):  # an operator that is not there, or not for this processor
        return False
    return torch.equal(answer.float(), torch.full((2, 64), 64.0))


def fitting(name: str, shape: torch.Size) -> Format:
    """The format `name`, or the next wider one that a weight of a shape can be laid out in."""
    wider = [form for form in FORMATS.values() if form.bits >= FORMATS[name].bits and form.fits(shape)]
    return min(wider, key=lambda form: form.bits)


def require_format(name: str) -> Format:
    """The format `name`; raises `InputError` where it is none, or none that can be had here."""
    there = ", ".join(available()) or "none: load with packed=False"
    if name not in FORMATS:
        raise InputError("weights", name, f"use auto, {', '.join(FORMATS)}; here there are {there}")
    if name not in available():
        hint = f"this processor or this build of torch cannot multiply it; there are {there}"
        raise InputError("weights", name, hint)
    return FORMATS[name]
