"""Codes of OpenVINO represent weights without rounding, or say that they round."""

import gguf
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from torch import nn

from trialogue.models.openvino.codes import Codes, recovered_codes, stored_codes
from trialogue.models.openvino.decoder import Linear, concatenate
from trialogue.models.openvino.weight_formats import make_encoder
from trialogue.models.packed.gguf_blocks import GgufBlocks
from trialogue.randomness import numpy_generator


def blocks_of(kind: Kind, rows: int = 8, columns: int = 512) -> GgufBlocks:
    draw = numpy_generator(0, "blocks", kind.name)
    if kind == Kind.Q4_K:  # gguf cannot write this type
        data = draw.integers(0, 256, (rows, columns // 256 * 144)).astype(np.uint8)
        data.reshape(-1, 144)[:, :4] = np.array([0.01, 0.02], np.float16).view(np.uint8)
    elif kind == Kind.Q6_K:
        data = draw.integers(0, 256, (rows, columns // 256 * 210)).astype(np.uint8)
        data.reshape(-1, 210)[:, 208:] = np.array([0.01], np.float16).view(np.uint8)
    else:
        weight = draw.normal(size=(rows, columns)).astype(np.float32)
        weight[0, :64] = 0.0
        weight[1, :32] = 3.0
        data = gguf.quants.quantize(weight, kind)
    return GgufBlocks(kind, data)


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q4_K, Kind.Q5_0, Kind.Q6_K, Kind.Q8_0])
def test_the_codes_of_a_file_represent_its_weights(kind):
    blocks = blocks_of(kind)
    codes = stored_codes(blocks)
    assert codes is not None
    assert codes.is_exact
    assert codes.codes.dtype == (np.uint8 if "Q4" in kind.name else np.int8)
    assert codes.codes.max() <= 15 or codes.codes.dtype == np.int8
    expected = blocks.weight().numpy()
    assert np.abs(codes.weight() - expected).max() <= 1e-6 * np.abs(expected).max()
    assert kind.name in codes.origin


def test_zero_points_are_not_rounded():
    zeros = stored_codes(blocks_of(Kind.Q4_1)).zeros
    assert np.abs(zeros - zeros.round()).max() > 0.4


def test_other_types_have_no_codes():
    assert stored_codes(blocks_of(Kind.Q5_1)) is None


@pytest.mark.parametrize(("kind", "bits"), [(Kind.Q4_1, 4), (Kind.Q8_0, 8)])
def test_codes_are_recovered_from_dequantised_weights(kind, bits):
    weight = blocks_of(kind, rows=40).weight()
    codes = recovered_codes(weight)
    assert codes is not None
    assert codes.is_exact
    assert codes.origin.startswith(f"{bits}-bit")
    assert np.abs(codes.weight() - weight.numpy()).max() <= 1e-6 * weight.abs().max()


def test_weights_that_are_not_codes_are_not_recovered():
    weight = blocks_of(Kind.Q4_1, rows=40).weight()
    weight[-1, -2] += 0.01 * weight[-1, -32:].abs().max()
    assert recovered_codes(weight) is None
    assert recovered_codes(weight[:, :40]) is None


def encoded(weights: str, weight: torch.Tensor, is_head: bool = False, recover: bool = False) -> Codes:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight.data = weight
    return make_encoder(weights, {}, recover=recover)(layer, is_head)


def test_formats_of_float_weights():
    weight = torch.from_numpy(numpy_generator(0, "weight").normal(size=(8, 64)).astype(np.float32))
    exact = encoded("float32", weight)
    assert exact.is_exact
    assert np.array_equal(exact.weight(), weight.numpy())
    rounded = {"int8": encoded("int8", weight), "int4": encoded("int4", weight)}
    errors = {name: np.abs(codes.weight() - weight.numpy()).max() for name, codes in rounded.items()}
    assert 0 < errors["int8"] < 0.02 < errors["int4"] < 0.3
    assert not any(codes.is_exact for codes in rounded.values())
    # The output head has 8 bits, and so have rows that are not divided into groups of 32.
    assert encoded("int4", weight, is_head=True).codes.dtype == np.int8
    assert encoded("int4", weight[:, :48]).codes.dtype == np.int8
    assert encoded("int8", blocks_of(Kind.Q4_1).weight(), recover=True).codes.dtype == np.uint8


def test_layers_are_concatenated_if_their_codes_have_the_same_layout():
    four, other = (Linear(stored_codes(blocks_of(kind)), None) for kind in (Kind.Q4_1, Kind.Q8_0))
    joined = concatenate([four, four])
    assert joined is not None
    assert np.array_equal(joined.codes.weight(), np.concatenate([four.codes.weight()] * 2))
    biased = four._replace(bias=np.zeros(8, np.float32))
    for layers in ([four, other], [four, biased], [other, Linear(encoded("int8", torch.ones(8, 512)), None)]):
        assert concatenate(layers) is None
