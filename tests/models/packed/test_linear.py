"""Packed layers have the results of plain layers, store their weights once, and report unsupported uses of weights."""

import copy
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from models.tiny_pretrained import next_distribution, save_tiny
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.packed import linear as packed_linear
from trialogue.models.packed.formats import available_formats
from trialogue.models.packed.linear import PackedLinear, WeightIsPackedError, pack_linear_layers
from trialogue.randomness import generator

pytestmark = pytest.mark.skipif(
    "float32" not in available_formats(), reason="this build of torch cannot pack layers"
)


def random_tensor(*shape: int) -> Tensor:
    return torch.randn(shape, generator=generator(len(shape), "packed", *shape))


def linear_layer(fan_in: int, fan_out: int, bias: bool = True) -> nn.Linear:
    layer = nn.Linear(fan_in, fan_out, bias=bias)
    layer.weight.data = random_tensor(fan_out, fan_in)
    return layer


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(1, 24), (7, 24), (300, 24), (2, 3, 24), (0, 24)])
def test_a_packed_layer_equals_the_plain_layer(shape, bias):
    layer, states = linear_layer(24, 40, bias), random_tensor(*shape)
    with torch.inference_mode():
        assert torch.allclose(PackedLinear(layer)(states), layer(states), rtol=1e-4, atol=1e-4)


class Doubled(nn.Linear):
    def forward(self, states: Tensor) -> Tensor:
        return 2 * super().forward(states)


def test_only_plain_layers_are_packed():
    hooked, wrapped, shared = linear_layer(8, 8), linear_layer(8, 8), linear_layer(8, 8)
    hooked.register_forward_hook(lambda layer, given, output: output + 1)
    forward = wrapped.forward
    wrapped.forward = lambda states: forward(states) - 1
    model = nn.Sequential(
        shared, nn.Sequential(nn.ReLU(), linear_layer(8, 8)), Doubled(8, 8), hooked, wrapped, shared
    )
    states = random_tensor(5, 8)
    with torch.inference_mode():
        expected = model(states)
        pack_linear_layers(model)
        assert torch.allclose(model(states), expected, rtol=1e-4, atol=1e-4)
    kinds = [type(layer).__name__ for layer in model.modules() if not isinstance(layer, nn.Sequential)]
    assert kinds == ["PackedLinear", "ReLU", "PackedLinear", "Doubled", "Linear", "Linear"]
    assert model[0] is model[5]
    others = nn.Sequential(linear_layer(8, 8).double(), linear_layer(8, 8).half())
    pack_linear_layers(others)
    assert [type(layer) for layer in others] == [nn.Linear] * 2


def test_operations_that_need_the_weight_raise_an_error():
    layer = PackedLinear(linear_layer(8, 8))
    with pytest.raises(WeightIsPackedError, match="cannot be read"):
        _ = layer.weight
    with pytest.raises(WeightIsPackedError, match="cannot be saved"):
        nn.Sequential(layer).state_dict()
    with pytest.raises(WeightIsPackedError, match="no gradient"):
        layer(random_tensor(2, 8).requires_grad_())
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(WeightIsPackedError, match="cannot be copied"):
            copied(nn.Sequential(layer) if copied is not copy.copy else layer)
    for moved in (nn.Module.double, nn.Module.half, lambda model: model.to("meta")):
        with pytest.raises(WeightIsPackedError, match=r"cannot be moved to torch\.float\d\d on (cpu|meta)"):
            moved(nn.Sequential(layer))
    assert torch.equal(
        nn.Sequential(layer).to("cpu").float().eval()(random_tensor(2, 8)), layer(random_tensor(2, 8))
    )


def resident_megabytes(path: Path) -> float:
    """Return the part of a mapped file that is in memory, in MB."""
    kilobytes, is_file = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        name, *values = line.split()
        if not name.endswith(":"):
            is_file = line.endswith(str(path))
        elif is_file and name == "Rss:":
            kilobytes += int(values[0])
    return kilobytes / 1024


def megabytes_after_packing(path: Path) -> float:
    """Return how many MB of 64 MB of weights in a mapped file stay in memory after packing."""
    save_file({"weight": random_tensor(1024, 16384)}, path)
    model = nn.Sequential(nn.Linear(16384, 1024, bias=False))
    weight = load_file(path)["weight"]
    model[0].weight = nn.Parameter(weight, requires_grad=False)
    expected = weight.sum()
    pack_linear_layers(model)
    megabytes = resident_megabytes(path)
    assert weight.sum() == expected
    return megabytes


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not list mapped files")
def test_weights_of_a_mapped_file_are_released(tmp_path, monkeypatch):
    assert megabytes_after_packing(tmp_path / "weights.safetensors") < 1
    monkeypatch.setattr(packed_linear, "_reclaim", lambda *arguments: None)
    assert megabytes_after_packing(tmp_path / "others.safetensors") > 32


def test_modified_weights_of_a_mapped_file_are_kept(tmp_path):
    save_file({"weight": random_tensor(1024, 512)}, tmp_path / "weights.safetensors")
    weight = load_file(tmp_path / "weights.safetensors")["weight"]
    weight[100:].mul_(2)
    expected = weight.clone()
    model = nn.Sequential(nn.Linear(512, 1024))
    model[0].weight = nn.Parameter(weight, requires_grad=False)
    pack_linear_layers(model)
    assert torch.equal(weight, expected)


def packed_layers(oracle: PretrainedOracle) -> int:
    return sum(isinstance(layer, PackedLinear) for layer in oracle.model.modules())


def test_a_loaded_model_is_packed_and_keeps_its_distribution(tmp_path):
    folder = save_tiny(tmp_path / "tiny")
    packed, unpacked = (
        load_pretrained(folder, device="cpu"),
        load_pretrained(folder, device="cpu", packed=False),
    )
    assert packed_layers(packed) == sum(type(layer) is nn.Linear for layer in unpacked.model.modules()) > 7
    assert packed_layers(unpacked) == 0
    assert (packed.vocab_size, packed.width, packed.dtype) == (
        unpacked.vocab_size,
        unpacked.width,
        unpacked.dtype,
    )
    assert torch.allclose(next_distribution(packed), next_distribution(unpacked), atol=1e-4)
    for dtype in ("bfloat16", "float64"):
        assert packed_layers(load_pretrained(folder, device="cpu", dtype=dtype)) == 0
