"""The option `weights`: formats of packed layers and the choice of "auto"."""

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

from models.tiny_pretrained import next_distribution, tiny_model, tiny_tokenizer
from refusals import expect_error
from trialogue.models.hub.catalogue import home
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.packed import choice
from trialogue.models.packed.choice import mean_total_variation
from trialogue.models.packed.formats import FORMATS, available
from trialogue.models.packed.linear import Packing, pack_linear_layers

pytestmark = pytest.mark.skipif(
    available() != tuple(FORMATS), reason="this machine does not multiply all formats"
)

VOCAB = 304  # The size is a valid number of rows for int4.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Save a model whose layers have valid shapes for every format."""
    path = tmp_path_factory.mktemp("wide")
    model = tiny_model(
        scale=20, hidden_size=64, intermediate_size=96, head_dim=16, vocab_size=VOCAB, num_key_value_heads=4
    )
    model.save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


def distributions(oracle: PretrainedOracle, rows: int = 1) -> Tensor:
    return next_distribution(oracle, rows=rows).exp()


@pytest.mark.parametrize(
    ("weights", "description", "max_distance"),
    [
        ("float32", "float32 (100%)", 1e-4),
        ("bfloat16", "bfloat16 (100%)", 0.05),
        ("int8", "int8 (100%)", 0.1),
        ("int4", "int4 (78%), int8 (22%)", 0.5),
    ],
)
def test_formats_change_the_distribution_by_rounding_only(folder, weights, description, max_distance):
    stored = distributions(load_pretrained(folder, device="cpu", packed=False))
    oracle = load_pretrained(folder, device="cpu", weights=weights)
    assert oracle.weights == description
    assert float((distributions(oracle) - stored).abs().sum() / 2) < max_distance
    assert oracle.dtype == torch.float32


def two_copies(few: str) -> PretrainedOracle:
    model = tiny_model(scale=20, hidden_size=64, intermediate_size=96, head_dim=16, vocab_size=VOCAB)
    pack_linear_layers(model, Packing(few, "bfloat16", many_from=4), model.get_output_embeddings())
    return PretrainedOracle(model, tiny_tokenizer())


def test_a_model_with_two_formats_has_equal_weights_in_both(monkeypatch):
    oracle = two_copies("int4")
    assert "int4 and bfloat16" in oracle.weights
    assert float((distributions(oracle, 1) - distributions(oracle, 8)).abs().sum()) < 0.06
    monkeypatch.setitem(FORMATS, "int4", FORMATS["int4"]._replace(rounded=Tensor.float))
    expect_error("cached passes differ", two_copies, "int4")


def choose_format(folder: Path, monkeypatch: pytest.MonkeyPatch, few: list[float], many: list[float]) -> str:
    monkeypatch.setattr(
        choice,
        "_time_formats",
        lambda plain, head: (dict(zip(FORMATS, few, strict=True)), dict(zip(FORMATS, many, strict=True))),
    )
    shutil.rmtree(home().parent, ignore_errors=True)  # Earlier choices are stored here.
    return load_pretrained(folder, device="cpu", weights="auto").weights


def test_auto_chooses_the_fastest_accurate_format(folder, monkeypatch):
    distances = []

    def record_distance(first: Tensor, second: Tensor) -> float:
        distances.append(mean_total_variation(first, second))
        return distances[-1]

    monkeypatch.setattr(choice, "mean_total_variation", record_distance)
    monkeypatch.setattr(choice, "MAX_TOTAL_VARIATION", 1.0)
    assert choose_format(folder, monkeypatch, [4, 3, 2, 1], [1, 1, 1, 1]) == "int4 (78%), int8 (22%)"
    assert choose_format(folder, monkeypatch, [4, 3, 1, 2], [1, 1, 1, 1]) == "int8 (100%)"
    assert choose_format(folder, monkeypatch, [4, 3, 1, 2], [9, 2, 4, 9]) == "int8 and bfloat16 (100%)"
    assert choose_format(folder, monkeypatch, [1, 2, 3, 4], [1, 1, 1, 1]) == "float32 (100%)"
    four, eight = distances[0], distances[1]
    assert four > eight > 0
    monkeypatch.setattr(choice, "MAX_TOTAL_VARIATION", (four + eight) / 2)
    assert choose_format(folder, monkeypatch, [4, 3, 2, 1], [1, 1, 1, 1]) == "int8 (100%)"
    monkeypatch.setattr(choice, "MAX_TOTAL_VARIATION", 0.0)
    assert choose_format(folder, monkeypatch, [4, 3, 2, 1], [1, 1, 1, 1]) == "float32 (100%)"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": "int3"}, "use auto, float32, bfloat16, int8, int4"),
        ({"weights": "int8", "packed": False}, "packed=False"),
        ({"weights": "auto", "packed": False}, "packed=False"),
        ({"weights": "int4", "dtype": "bfloat16"}, "float32 models on the CPU"),
    ],
)
def test_unsupported_settings_are_rejected_in_one_line(folder, settings, message):
    caught = expect_error(message, load_pretrained, folder, device="cpu", **settings)
    assert str(settings["weights"]) in str(caught)


def test_insufficient_memory_is_reported_in_one_line(folder, monkeypatch):
    def raise_memory_error(*arguments: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")

    monkeypatch.setattr(choice, "pack_linear_layers", raise_memory_error)
    expect_error("memory is insufficient", load_pretrained, folder, device="cpu", weights="int8")
