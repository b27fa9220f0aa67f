"""Weight matrices as integer codes with scales and zero points, which OpenVINO decodes inside of a matrix product."""

from __future__ import annotations

from typing import Any, NamedTuple

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from numpy.typing import NDArray
from torch import Tensor

from trialogue.models.packed.formats import GROUP_SIZE, quantise_int8
from trialogue.models.packed.gguf_blocks import GgufBlocks

_LARGEST_CODE = 15
_ROUNDING = 1e-6
_CHECKED_ROWS = 16
_HALF_ONE = np.array([1.0], np.float16).view(np.uint8)
_ONE_SCALE = (Kind.Q8_0, Kind.Q5_0)
"""Types whose blocks of 32 codes begin with their scale."""
_Q6_SCALES, _Q6_FACTOR = slice(192, 208), slice(208, 210)


class Codes(NamedTuple):
    """Weight matrix (out, in), represented as (codes - zeros) * scales in groups of consecutive inputs.

    Attributes:
        codes: Codes (out, in): uint8 from 0 to 15, or int8. The weights themselves in float32 if `scales` is None.
        scales: Scale (out, groups) float32 of each group, or None.
        zeros: Zero point (out, groups) float32 of each group, not necessarily an integer. None for zeros.
        origin: Description of the format.
        is_exact: Whether the weights of the checkpoint are represented without rounding.
    """

    codes: NDArray[Any]
    scales: NDArray[np.float32] | None
    zeros: NDArray[np.float32] | None
    origin: str
    is_exact: bool = True

    def weight(self) -> NDArray[np.float32]:
        """Return the weight matrix (out, in) in float32."""
        if self.scales is None:
            return self.codes
        groups = self.codes.astype(np.float32).reshape(*self.scales.shape, -1)
        if self.zeros is not None:
            groups -= self.zeros[:, :, None]
        return (groups * self.scales[:, :, None]).reshape(self.codes.shape)


def stored_codes(blocks: GgufBlocks) -> Codes | None:
    """Return the codes of a weight in a GGUF file without rounding.

    Args:
        blocks: Weight, quantised or not.

    Returns:
        The codes, or None if the type is not Q4_0, Q4_1, Q4_K, Q5_0, Q6_K or Q8_0.
    """
    name = blocks.kind.name
    if blocks.four_bits:
        return _four_bits(*blocks.four_bit_codes(), f"4-bit codes of {name}")
    rows = len(blocks.data)
    stored = blocks.data.reshape(-1, gguf.GGML_QUANT_SIZES[blocks.kind][1])
    replaced: list[tuple[slice, Any]]
    if blocks.kind in _ONE_SCALE:
        scales, replaced = _halves(stored[:, :2]), [(slice(0, 2), _HALF_ONE)]
    elif blocks.kind == Kind.Q6_K:
        scales = _halves(stored[:, _Q6_FACTOR]) * stored[:, _Q6_SCALES].view(np.int8)
        replaced = [(_Q6_SCALES, np.uint8(1)), (_Q6_FACTOR, _HALF_ONE)]
    else:
        return None
    # A block whose scales are 1 has its codes as weights.
    unscaled = stored.copy()
    for place, value in replaced:
        unscaled[:, place] = value
    codes = gguf.dequantize(unscaled.reshape(rows, -1), blocks.kind).astype(np.int8)
    return Codes(codes, scales.reshape(rows, -1), None, f"8-bit codes of {name}")


def _halves(stored: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Read one half-precision number (n, 1) from the two bytes of each row."""
    return np.ascontiguousarray(stored).view(np.float16).astype(np.float32)


def float_codes(weight: Tensor, origin: str = "float32") -> Codes:
    """Return a float32 weight (out, in) as it is."""
    return Codes(weight.detach().contiguous().numpy(), None, None, origin)


def int8_codes(weight: Tensor, origin: str = "int8") -> Codes:
    """Round a float32 weight (out, in) to 8 bits, with one scale per output."""
    codes, scales = quantise_int8(weight.detach())
    return Codes(codes.numpy(), scales.float()[:, None].numpy(), None, origin, False)


def int4_codes(weight: Tensor, origin: str = "int4") -> Codes | None:
    """Round a float32 weight (out, in) to 16 equidistant values per group of 32 weights.

    Returns:
        The codes, or None if the number of inputs is not a multiple of 32.
    """
    if weight.shape[1] % GROUP_SIZE:
        return None
    groups = weight.detach().view(len(weight), -1, GROUP_SIZE)
    minima, maxima = groups.aminmax(dim=2)
    steps = (maxima - minima) / _LARGEST_CODE
    scaled = (groups - minima[:, :, None]) / steps.masked_fill(steps == 0, 1.0)[:, :, None]
    codes = scaled.round_().clamp_(0, _LARGEST_CODE).to(torch.uint8).view(weight.shape)
    return _four_bits(codes, steps, minima, origin)._replace(is_exact=False)


def _int8_groups(weight: Tensor, origin: str) -> Codes:
    """Round a float32 weight (out, in) to 8 bits, with one scale per group of 32 weights."""
    groups = weight.detach().view(len(weight), -1, GROUP_SIZE)
    scales = groups.abs().amax(2) / 127
    codes = (groups / scales.masked_fill(scales == 0, 1.0)[:, :, None]).round_().to(torch.int8)
    return Codes(codes.view(weight.shape).numpy(), scales.contiguous().numpy(), None, origin)


def recovered_codes(weight: Tensor, source: str = "") -> Codes | None:
    """Return the 4-bit or 8-bit codes of a float32 weight (out, in) that was dequantised from Q4_1 or Q8_0.

    Args:
        weight: Weight.
        source: Text that is added to the description of the format.

    Returns:
        Codes whose weights equal `weight` up to the rounding of float32, or None if there are none.
    """
    if weight.shape[1] % GROUP_SIZE:
        return None
    for recover, bits in ((int4_codes, 4), (_int8_groups, 8)):
        # Most weights without such codes differ in the first rows.
        for part in (weight[:_CHECKED_ROWS], weight):
            codes = recover(part, f"{bits}-bit codes{source}")
            if codes is None or not _represents(codes, part):
                break
            if part is weight:
                return codes._replace(is_exact=True)
    return None


def _represents(codes: Codes, weight: Tensor) -> bool:
    """Return whether codes represent a weight (out, in) up to the rounding of float32 in each group."""
    groups = weight.detach().view(len(weight), -1, GROUP_SIZE)
    errors = (torch.from_numpy(codes.weight()).view_as(groups) - groups).abs().amax(2)
    return bool((errors <= _ROUNDING * groups.abs().amax(2)).all())


def _four_bits(codes: Tensor, steps: Tensor, minima: Tensor, origin: str) -> Codes:
    """Return codes (out, in) whose weights are codes * steps + minima, with steps and minima (out, groups)."""
    # A group of equal weights has no step: their value becomes the scale of the code 1.
    is_flat = steps == 0
    codes = torch.where(is_flat.repeat_interleave(GROUP_SIZE, 1), 1, codes).to(torch.uint8)
    scales = torch.where(is_flat, minima, steps)
    zeros = torch.where(is_flat, 0.0, -minima / steps.masked_fill(is_flat, 1.0))
    return Codes(codes.contiguous().numpy(), scales.contiguous().numpy(), zeros.contiguous().numpy(), origin)
