"""What trying a model has shown is found again under the same conditions, and under no others."""

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaMLP

from models.tiny_gguf import write_gguf
from models.tiny_pretrained import mlp_by_hand, next_distribution, save_tiny, tiny_model, tiny_tokenizer
from trialogue.models import catalogue, findings, pretrained
from trialogue.models.findings import Findings
from trialogue.models.packed import choice
from trialogue.models.packed.formats import FORMATS, available
from trialogue.models.pretrained import PretrainedOracle, load_pretrained

needs_formats = pytest.mark.skipif(
    available() != tuple(FORMATS), reason="this machine does not multiply all formats"
)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was tried, in order: "passes" and "formats"."""
    found: list[str] = []
    passes, seconds = PretrainedOracle._cache_error, choice._seconds

    def of_passes(self: PretrainedOracle, length: int) -> float:
        found.append("passes")
        return passes(self, length)

    def of_formats(*arguments: Any) -> Any:
        found.append("formats")
        return seconds(*arguments)

    monkeypatch.setattr(PretrainedOracle, "_cache_error", of_passes)
    monkeypatch.setattr(choice, "_seconds", of_formats)
    return found


@pytest.fixture(params=["folder", "gguf"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "folder":
        return save_tiny(tmp_path / "model")
    write_gguf(tmp_path / "model.gguf")
    return tmp_path / "model.gguf"


def load(model: Path, **settings: Any) -> PretrainedOracle:
    return load_pretrained(model, device="cpu", **settings)


def test_a_model_is_tried_once(model: Path, tried: list[str]) -> None:
    first = load(model)
    assert set(tried) == {"passes"}
    tried.clear()
    second = load(model)
    assert tried == []
    assert (first.plain_head, first.window) == (second.plain_head, second.window)
    assert (first.decoder is None) == (second.decoder is None)
    assert torch.equal(next_distribution(first), next_distribution(second))


@needs_formats
def test_formats_are_measured_once(model: Path, tried: list[str]) -> None:
    first = load(model, weights="auto")
    assert "formats" in tried
    tried.clear()
    second = load(model, weights="auto")
    assert tried == []
    assert first.weights == second.weights
    assert torch.equal(next_distribution(first), next_distribution(second))


def touched(model: Path, _: pytest.MonkeyPatch) -> None:
    file = model if model.is_file() else model / "model.safetensors"
    os.utime(file, ns=(0, 0))


def replaced(model: Path, _: pytest.MonkeyPatch) -> None:
    """By a copy of the same size and time."""
    file = model if model.is_file() else model / "config.json"
    stat, content = file.stat(), file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def of_module(module: Any, name: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    return lambda model, patch: patch.setattr(module, name, "0.0.0")


def on_threads(model: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch, "get_num_threads", lambda: 7)


CHANGES = {
    "time": touched,
    "copy": replaced,
    "torch": of_module(torch, "__version__"),
    "transformers": of_module(findings.transformers, "__version__"),
    "trialogue": of_module(findings.trialogue, "__version__"),
    "code": lambda model, patch: patch.setattr(findings, "_code", lambda: "another"),
    "processor": lambda model, patch: patch.setattr(findings, "_processor", lambda: ["another"]),
    "threads": on_threads,
    "classes": lambda model, patch: patch.setattr(
        LlamaMLP, "forward", lambda self, x: self.down_proj(self.up_proj(x))
    ),
    "switches": lambda model, patch: patch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_under_other_conditions_it_is_tried_again(
    model: Path, change: str, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(model)
    tried.clear()
    CHANGES[change](model, monkeypatch)
    load(model)
    assert tried


@pytest.mark.parametrize("settings", [{"weights": "bfloat16"}, {"packed": False}, {"dtype": "bfloat16"}])
def test_other_settings_are_tried_for_themselves(
    model: Path, settings: dict[str, Any], tried: list[str]
) -> None:
    if settings.get("weights", "float32") not in available():
        pytest.skip("this machine does not multiply it")
    load(model)
    tried.clear()
    load(model, **settings)
    assert tried


@pytest.mark.parametrize(
    "spoil",
    [
        lambda kept: b"",
        lambda kept: kept[: len(kept) // 2],
        lambda kept: b"\xff\xfe",
        lambda kept: b"[]",
        lambda kept: kept.replace(b'"found"', b'"lost"'),
        lambda kept: kept.replace(b'"plain_head": true', b'"plain_head": "yes"'),
        lambda kept: kept.replace(b'"plain_head"', b'"plane_head"'),
        lambda kept: kept.replace(b'"threads": ', b'"threads": 1'),
    ],
    ids=[
        "empty",
        "cut",
        "no text",
        "a list",
        "nothing found",
        "no truth value",
        "other names",
        "other conditions",
    ],
)
def test_what_cannot_be_read_is_ignored(
    model: Path, spoil: Callable[[bytes], bytes], tried: list[str]
) -> None:
    expected = next_distribution(load(model))
    (kept,) = (catalogue.home().parent / "findings").iterdir()
    right = kept.read_bytes()
    assert spoil(right) != right
    kept.write_bytes(spoil(right))
    tried.clear()
    assert torch.equal(next_distribution(load(model)), expected)
    assert tried
    assert kept.read_bytes() == right


@needs_formats
@pytest.mark.parametrize(
    "packing", [None, 5, [], ["int3", "int3", 8], ["int4", "int4", "8"], [["int4"], "int4", 8]]
)
def test_formats_that_are_none_are_measured_again(model: Path, packing: Any, tried: list[str]) -> None:
    load(model, weights="auto")
    (file,) = (catalogue.home().parent / "findings").iterdir()
    content = json.loads(file.read_text())
    content["found"]["packing"] = packing
    file.write_text(json.dumps(content))
    tried.clear()
    load(model, weights="auto")
    assert "formats" in tried


def test_a_folder_that_cannot_be_written_keeps_nothing(model: Path, tried: list[str]) -> None:
    catalogue.home().parent.mkdir(parents=True)
    (catalogue.home().parent / "findings").write_text("in the way")
    for _ in range(2):
        tried.clear()
        load(model)
        assert tried


def test_models_without_files_are_tried_each_time(tried: list[str]) -> None:
    for _ in range(2):
        tried.clear()
        PretrainedOracle(tiny_model(), tiny_tokenizer())
        assert tried
    assert not (catalogue.home().parent / "findings").exists()
    assert Findings([Path("nowhere")]).get("passes") is None


def test_a_model_whose_cache_is_wrong_is_refused_each_time(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretrained, "cache_error", lambda oracle, tokens: 1.0)
    for _ in range(2):
        with pytest.raises(pretrained.InputError, match="cached passes differ"):
            load(model)
    monkeypatch.undo()
    load(model)


@pytest.mark.parametrize("always", [True, False], ids=["always", "for single tokens"])
def test_a_model_whose_code_reads_weights_is_loaded_as_it_is_and_at_once_again(
    model: Path, always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, packed = next_distribution(load(model)), []
    forward, right = LlamaMLP.forward, pretrained.packed_as

    def some_by_hand(self: Any, states: Tensor) -> Tensor:
        return mlp_by_hand(self, states) if always or states.shape[1] == 1 else forward(self, states)

    monkeypatch.setattr(LlamaMLP, "forward", some_by_hand)
    monkeypatch.setattr(pretrained, "packed_as", lambda *given: packed.append(1) or right(*given))
    for weights in ("float32", "float32", "bfloat16"):
        said = pytest.warns(UserWarning, match="its code reads weights itself")
        with nullcontext() if weights == "float32" else said:
            oracle = load(model, weights=weights)
        assert oracle.weights == "as stored (100%)"
        assert torch.allclose(next_distribution(oracle), expected, atol=1e-4)
    assert len(packed) == 2
