"""Quantised weights in the block formats of GGUF files.

Some of them can be used in packed layers without requantisation. The layouts of blocks are defined by llama.cpp
(ggml-common.h) and dequantised by `gguf.quants`.
"""

import math
from typing import NamedTuple

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from torch import Tensor

from trialogue.models.packed.formats import GROUP_SIZE

_BYTES_AT_ONCE = 1 << 14


class GgufBlocks(NamedTuple):
    """Weight matrix (out, in) in a block format of GGUF.

    Attributes:
        kind: Type of the blocks.
        data: Blocks of each output row, (out, bytes).
    """

    kind: Kind
    data: np.ndarray

    @property
    def four_bits(self) -> bool:
        """Whether weights are stored as 4-bit integers in groups of 32, which int4 layers can use."""
        return self.kind in _FOUR_BITS

    @property
    def quantised(self) -> bool:
        """Whether the weight is quantised in blocks."""
        return self.kind not in (Kind.F32, Kind.F16, Kind.BF16, Kind.F64)

    def weight(self) -> Tensor:
        """Return the dequantised weight, (out, in) float32."""
        if self.data.dtype != np.uint8:
            return torch.tensor(gguf.dequantize(self.data, self.kind))
        # The library processes sixteen rows at a time. Short rows are joined for speed, because blocks are independent.
        rows, size = self.data.shape
        joined = math.gcd(rows, 1 << max(0, (_BYTES_AT_ONCE // size).bit_length() - 1))
        numbers = gguf.dequantize(self.data.reshape(rows // joined, size * joined), self.kind)
        return torch.from_numpy(numbers.reshape(rows, -1))

    def take(self) -> tuple[Tensor, Tensor] | None:
        """Return the 4-bit codes of the weight, with scales and offsets, in the format of `quantise_int4`.

        A weight step * code + minimum equals (code - 8) * step + (minimum + 8 * step). The scale is the step, and the
        offset is the last term, both rounded to bfloat16.

        Returns:
            Codes (out, in) int32 and scales with offsets (in / 32, out, 2) bfloat16. None if the type does not have
            4-bit codes in groups of 32 weights.
        """
        if not self.four_bits:
            return None
        codes, steps, minima = self.four_bit_codes()
        pairs = torch.stack([steps.bfloat16(), (minima + 8 * steps).bfloat16()], 2)
        return codes.to(torch.int32), pairs.transpose(0, 1).contiguous()

    def four_bit_codes(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the 4-bit codes of the weight, if `four_bits` is True.

        Returns:
            Codes (out, in) uint8, and steps and minima (out, in / 32) float32. A weight is code * step + minimum.
        """
        blocks = torch.tensor(self.data).view(-1, gguf.GGML_QUANT_SIZES[self.kind][1])
        codes, steps, minima = _FOUR_BITS[self.kind](blocks)
        rows = len(self.data)
        return codes.view(rows, -1), steps.view(rows, -1), minima.view(rows, -1)


def _nibbles(packed: Tensor) -> Tensor:
    """Unpack 16 bytes to codes (n, 32), low nibbles first."""
    return torch.cat([packed & 15, packed >> 4], -1)


def _halves(blocks: Tensor, place: int) -> Tensor:
    """Read the half-precision number (n,) at byte `place` of each block, as float32."""
    return blocks[:, place : place + 2].contiguous().view(torch.float16).float()[:, 0]


def _q4_0(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    steps = _halves(blocks, 0)
    return _nibbles(blocks[:, 2:]), steps, -8 * steps


def _q4_1(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return _nibbles(blocks[:, 4:]), _halves(blocks, 0), _halves(blocks, 2)


def _q4_k(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # Eight groups share two half-precision factors of their 6-bit scales and offsets.
    scales, offsets = map(torch.from_numpy, gguf.quants.Q4_K.get_scale_min(blocks[:, 4:16].numpy()))
    steps = _halves(blocks, 0)[:, None] * scales
    minima = -_halves(blocks, 2)[:, None] * offsets
    packed = blocks[:, 16:].view(len(blocks), -1, 1, GROUP_SIZE)
    return torch.cat([packed & 15, packed >> 4], 2), steps.flatten(), minima.flatten()


_FOUR_BITS = {Kind.Q4_0: _q4_0, Kind.Q4_1: _q4_1, Kind.Q4_K: _q4_k}
