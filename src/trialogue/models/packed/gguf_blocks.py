"""Weights as a GGUF file holds them: rows of blocks, and what of them is taken over into packed layers as it is.

The layouts of blocks are those of llama.cpp (ggml-common.h); `gguf.quants` dequantises them.
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
    """A weight (out, in): of each output the blocks in a row of `data` (out, bytes), in the file's type `kind`."""

    kind: Kind
    data: np.ndarray

    @property
    def four_bits(self) -> bool:
        """Whether `take` has something to take over."""
        return self.kind in _FOUR_BITS

    @property
    def quantised(self) -> bool:
        """Whether the numbers were rounded to a few steps of each block."""
        return self.kind not in (Kind.F32, Kind.F16, Kind.BF16, Kind.F64)

    def weight(self) -> Tensor:
        """The weight (out, in) in float32, as llama.cpp defines it."""
        if self.data.dtype != np.uint8:
            return torch.tensor(gguf.dequantize(self.data, self.kind))
        # The library takes sixteen rows at a time, however short. GgufBlocks know nothing of rows: these are joined.
        rows, size = self.data.shape
        joined = math.gcd(rows, 1 << max(0, (_BYTES_AT_ONCE // size).bit_length() - 1))
        numbers = gguf.dequantize(self.data.reshape(rows // joined, size * joined), self.kind)
        return torch.from_numpy(numbers.reshape(rows, -1))

    def take(self) -> tuple[Tensor, Tensor] | None:
        """Codes, and scales with offsets, as `int4_codes` gives them; None for types without those of 32 weights.

        Their weight is step * code + least, which is (code - 8) * step + (least + 8 * step): scale and offset are these
        in bfloat16.
        """
        if not self.four_bits:
            return None
        blocks = torch.tensor(self.data).view(-1, gguf.GGML_QUANT_SIZES[self.kind][1])
        codes, steps, least = _FOUR_BITS[self.kind](blocks)
        rows = len(self.data)
        scales = steps.bfloat16()
        offsets = (least + 8 * steps).bfloat16()
        pairs = torch.stack([scales.view(rows, -1), offsets.view(rows, -1)], 2).transpose(0, 1).contiguous()
        return codes.view(rows, -1).to(torch.int32), pairs


def _nibbles(packed: Tensor) -> Tensor:
    """Codes (n, 32) of 16 bytes each: the low halves are the first 16."""
    return torch.cat([packed & 15, packed >> 4], -1)


def _halves(blocks: Tensor, place: int) -> Tensor:
    """The half-precision number (n,) that begins at byte `place` of each block, in float32."""
    return blocks[:, place : place + 2].contiguous().view(torch.float16).float()[:, 0]


def _q4_0(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    steps = _halves(blocks, 0)
    return _nibbles(blocks[:, 2:]), steps, -8 * steps


def _q4_1(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return _nibbles(blocks[:, 4:]), _halves(blocks, 0), _halves(blocks, 2)


def _q4_k(blocks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # Eight groups share two half-precision numbers, by which their 6-bit scales and offsets are multiplied.
    scales, offsets = map(torch.from_numpy, gguf.quants.Q4_K.get_scale_min(blocks[:, 4:16].numpy()))
    steps = _halves(blocks, 0)[:, None] * scales
    least = -_halves(blocks, 2)[:, None] * offsets
    packed = blocks[:, 16:].view(len(blocks), -1, 1, GROUP_SIZE)
    return torch.cat([packed & 15, packed >> 4], 2), steps.flatten(), least.flatten()


_FOUR_BITS = {Kind.Q4_0: _q4_0, Kind.Q4_1: _q4_1, Kind.Q4_K: _q4_k}
