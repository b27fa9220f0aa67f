"""Blocks of GGUF files: codes are used unchanged, and only scales and offsets are rounded."""

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from torch import nn

from trialogue.models.packed import gguf_blocks
from trialogue.models.packed.formats import GROUP_SIZE, available_formats, dequantise_int4
from trialogue.models.packed.gguf_blocks import GgufBlocks
from trialogue.models.packed.linear import PackedLinear, Packing, describe_formats, load_missing_weights
from trialogue.randomness import generator, numpy_generator

OUT, IN = 48, 512
UNCHANGED_KINDS = [Kind.Q4_0, Kind.Q4_1, Kind.Q4_K]


def blocks_of(kind: Kind) -> GgufBlocks:
    """Return random blocks whose half-precision numbers have a realistic size."""
    random = numpy_generator(0, "blocks", kind.name)
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    data = random.integers(0, 256, (OUT * IN // numbers, size), np.uint8)
    places = {Kind.Q4_0: 1, Kind.Q8_0: 1, Kind.Q4_1: 2, Kind.Q5_1: 2, Kind.Q4_K: 2}[kind]
    halves = random.normal(0, 0.05, (len(data), places)).astype(np.float16)
    data[:, : 2 * places] = halves.view(np.uint8).reshape(len(data), -1)
    return GgufBlocks(kind, data.reshape(OUT, -1))


def relative_rounding_error(blocks: GgufBlocks) -> float:
    """Return the largest error of a weight relative to the largest possible rounding error of scale and offset."""
    converted = blocks.take()
    assert converted is not None
    scales, offsets = converted[1].float().transpose(0, 1).unbind(2)
    codes = converted[0].view(OUT, -1, GROUP_SIZE)
    # Rounding to 8 bits has a relative error of at most 1 / 256. Sums are computed in float32.
    max_error = ((codes - 8).abs() * scales.abs()[..., None] + offsets.abs()[..., None]) / 255 + 1e-6
    errors = (dequantise_int4(*converted) - blocks.weight()).abs()
    return float((errors.view_as(max_error) / max_error).max())


@pytest.mark.parametrize("kind", UNCHANGED_KINDS)
def test_codes_are_used_unchanged(kind):
    assert relative_rounding_error(blocks_of(kind)) <= 1


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1])
def test_a_wrong_order_within_a_block_is_detected(kind, monkeypatch):
    wrong = lambda packed: torch.cat([packed >> 4, packed & 15], -1)  # noqa: E731
    monkeypatch.setattr(gguf_blocks, "_nibbles", wrong)
    assert not relative_rounding_error(blocks_of(kind)) <= 1


@pytest.mark.parametrize("kind", [*UNCHANGED_KINDS, Kind.Q8_0, Kind.Q5_1])
@pytest.mark.parametrize("rows", [1, 3, OUT])
def test_weights_equal_those_of_the_gguf_library(kind, rows):
    data = blocks_of(kind).data[:rows]
    weight = GgufBlocks(kind, data).weight()
    assert weight.shape == (rows, IN)
    assert torch.equal(weight, torch.from_numpy(gguf.dequantize(data, kind)))


@pytest.mark.skipif("int4" not in available_formats(), reason="this machine does not multiply int4")
@pytest.mark.parametrize(
    ("kind", "format", "description"),
    [
        (Kind.Q4_1, "int4", "int4 with the codes of Q4_1 (100%)"),
        (Kind.Q4_K, "int4", "int4 with the codes of Q4_K (100%)"),
        (Kind.Q8_0, "int4", "int4 rounded from Q8_0 (100%)"),
        (Kind.Q8_0, "int8", "int8 rounded from Q8_0 (100%)"),
        (Kind.Q4_1, "float32", "float32 of Q4_1 (100%)"),
    ],
)
def test_a_layer_multiplies_by_the_weights_of_its_blocks(kind, format, description):
    blocks, max_error = blocks_of(kind), {"int4": 0.1, "int8": 0.02, "float32": 1e-5}[format]
    bias = nn.Parameter(torch.randn(OUT, generator=generator(0, "bias")), requires_grad=False)
    layer = nn.Linear(IN, OUT, device="meta")
    layer.bias = bias
    states = torch.randn(5, IN, generator=generator(0, "states"))
    with torch.inference_mode():
        expected = states @ blocks.weight().T + bias
        wider = format == "int4" and "bfloat16" in available_formats()  # Some processors multiply only int4.
        for many in (format, "bfloat16") if wider else (format,):
            packed = PackedLinear(layer, Packing(format, many, many_from=3), blocks)
            assert (
                describe_formats(nn.Sequential(packed)).replace(" and bfloat16", "").startswith(description)
            )
            for rows in (1, 5):
                error = (packed(states[:rows]) - expected[:rows]).square().mean().sqrt()
                assert error < max_error * expected.square().mean().sqrt()


def test_only_empty_layers_are_filled():
    empty, full = nn.Linear(IN, OUT, bias=False, device="meta"), nn.Linear(IN, OUT, bias=False)
    original, blocks = full.weight, blocks_of(Kind.Q4_0)
    load_missing_weights({empty: blocks, full: blocks})
    assert torch.equal(empty.weight, blocks.weight())
    assert full.weight is original
