"""Stored self-check results are used under the same conditions only."""

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
from trialogue.models.decoders.checkpoint import DecoderCheckpoint
from trialogue.models.decoders.network import GatedMlp
from trialogue.models.hub import catalogue, findings, pretrained
from trialogue.models.hub.findings import SelfCheckStore
from trialogue.models.hub.pretrained import PretrainedOracle, load_pretrained
from trialogue.models.packed import choice
from trialogue.models.packed.formats import FORMATS, available_formats

needs_formats = pytest.mark.skipif(
    available_formats() != tuple(FORMATS), reason="this machine does not multiply all formats"
)


@pytest.fixture
def checks_run(monkeypatch):
    """Return the list of executed checks ("passes" and "formats"), in order."""
    found: list[str] = []
    passes, seconds = PretrainedOracle._cache_error, choice._time_formats

    def record_pass_check(self: PretrainedOracle, length: int) -> float:
        found.append("passes")
        return passes(self, length)

    def record_format_check(*arguments: Any) -> Any:
        found.append("formats")
        return seconds(*arguments)

    monkeypatch.setattr(PretrainedOracle, "_cache_error", record_pass_check)
    monkeypatch.setattr(choice, "_time_formats", record_format_check)
    return found


@pytest.fixture
def model(tmp_path):
    return save_tiny(tmp_path / "model")


@pytest.fixture
def gguf(tmp_path):
    write_gguf(tmp_path / "model.gguf")
    return tmp_path / "model.gguf"


def load(model: Path, **settings: Any) -> PretrainedOracle:
    return load_pretrained(model, device="cpu", **settings)


@pytest.mark.parametrize("kind", ["model", "gguf"])
@pytest.mark.parametrize("weights", ["float32", pytest.param("auto", marks=needs_formats)])
def test_model_is_checked_once(kind, weights, checks_run, request):
    path = request.getfixturevalue(kind)
    first = load(path, weights=weights)
    assert set(checks_run) == ({"passes"} if weights == "float32" else {"passes", "formats"})
    checks_run.clear()
    second = load(path, weights=weights)
    assert checks_run == []
    assert (first.plain_head, first.window, first.weights) == (
        second.plain_head,
        second.window,
        second.weights,
    )
    assert (first.decoder is None) == (second.decoder is None)
    assert torch.equal(next_distribution(first), next_distribution(second))


def touch_file(model: Path, _: pytest.MonkeyPatch) -> None:
    os.utime(model / "model.safetensors", ns=(0, 0))


def touch_gguf_file(model: Path, _: pytest.MonkeyPatch) -> None:
    os.utime(model, ns=(0, 0))


def replace_file(model: Path, _: pytest.MonkeyPatch) -> None:
    """Replace the file by a copy of the same size and modification time."""
    file = model / "config.json"
    stat, content = file.stat(), file.read_bytes()
    file.unlink()
    file.write_bytes(content)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def change_attribute(module: Any, name: str) -> Callable[[Path, pytest.MonkeyPatch], None]:
    return lambda model, patch: patch.setattr(module, name, "0.0.0")


def change_threads(model: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(torch, "get_num_threads", lambda: 7)


CHANGES = {
    "time": touch_file,
    "time of a GGUF file": touch_gguf_file,
    "copy": replace_file,
    "torch": change_attribute(torch, "__version__"),
    "transformers": lambda model, patch: patch.setattr(findings, "version", lambda name: "0.0.0"),
    "trialogue": change_attribute(findings.trialogue, "__version__"),
    "code": lambda model, patch: patch.setattr(findings, "_code", lambda: "another"),
    "processor": lambda model, patch: patch.setattr(findings, "_processor", lambda: ["another"]),
    "threads": change_threads,
    "classes": lambda model, patch: patch.setattr(
        GatedMlp, "forward", lambda self, states: self.down_proj(self.up_proj(states))
    ),
    "switches": lambda model, patch: patch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2"),
}


def test_changed_conditions_repeat_the_checks(model, gguf, checks_run):
    for change, made in CHANGES.items():
        file = gguf if made is touch_gguf_file else model
        load(file)
        checks_run.clear()
        with pytest.MonkeyPatch.context() as patch:
            made(file, patch)
            load(file)
        assert checks_run, change


def test_settings_are_checked_separately(model, checks_run):
    load(model)
    for settings in ({"weights": "bfloat16"}, {"packed": False}, {"dtype": "bfloat16"}):
        if settings.get("weights", "float32") in available_formats():
            checks_run.clear()
            load(model, **settings)
            assert checks_run, settings


SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "no text": lambda content: b"\xff\xfe",
    "a list": lambda content: b"[]",
    "nothing found": lambda content: content.replace(b'"found"', b'"lost"'),
    "no truth value": lambda content: content.replace(b'"plain_head": true', b'"plain_head": "yes"'),
    "other names": lambda content: content.replace(b'"plain_head"', b'"plane_head"'),
    "other conditions": lambda content: content.replace(b'"threads": ', b'"threads": 1'),
}


def test_unreadable_files_are_ignored(model, checks_run):
    expected = next_distribution(load(model))
    (stored_file,) = (catalogue.models_folder().parent / "findings").iterdir()
    original = stored_file.read_bytes()
    for name, spoil in SPOILED.items():
        assert spoil(original) != original, name
        stored_file.write_bytes(spoil(original))
        checks_run.clear()
        assert torch.equal(next_distribution(load(model)), expected), name
        assert checks_run, name
        assert stored_file.read_bytes() == original, name


@needs_formats
def test_invalid_formats_are_measured_again(model, checks_run):
    load(model, weights="auto")
    (file,) = (catalogue.models_folder().parent / "findings").iterdir()
    content = json.loads(file.read_text())
    for packing in (None, 5, [], ["int3", "int3", 8], ["int4", "int4", "8"], [["int4"], "int4", 8]):
        content["found"]["packing"] = packing
        file.write_text(json.dumps(content))
        checks_run.clear()
        load(model, weights="auto")
        assert "formats" in checks_run, packing


def test_read_only_folder_stores_nothing(model, checks_run):
    catalogue.models_folder().parent.mkdir(parents=True)
    (catalogue.models_folder().parent / "findings").write_text("in the way")
    for _ in range(2):
        checks_run.clear()
        load(model)
        assert checks_run


def test_models_without_files_are_checked_each_time(checks_run):
    for _ in range(2):
        checks_run.clear()
        PretrainedOracle(tiny_model(), tiny_tokenizer())
        assert checks_run
    assert not (catalogue.models_folder().parent / "findings").exists()
    assert SelfCheckStore([Path("nowhere")]).get("passes") is None


def test_wrong_cache_is_rejected_each_time(model, monkeypatch):
    monkeypatch.setattr(pretrained, "cache_error", lambda oracle, tokens: 1.0)
    for _ in range(2):
        with pytest.raises(pretrained.InputError, match="cached passes differ"):
            load(model)
    monkeypatch.undo()
    load(model)


@pytest.mark.parametrize("always", [True, False], ids=["always", "for single tokens"])
def test_model_that_reads_weights_is_loaded_unpacked(model, always, monkeypatch):
    expected, packed = next_distribution(load(model)), []
    forward, original = LlamaMLP.forward, pretrained.pack_weights

    def partly_manual_forward(self: Any, states: Tensor) -> Tensor:
        return mlp_by_hand(self, states) if always or states.shape[1] == 1 else forward(self, states)

    monkeypatch.setattr(LlamaMLP, "forward", partly_manual_forward)
    monkeypatch.setattr(DecoderCheckpoint, "open", lambda *_: None)
    monkeypatch.setattr(pretrained, "pack_weights", lambda *given: packed.append(1) or original(*given))
    others = {"bfloat16"}.intersection(available_formats())  # Some processors do not multiply it.
    for weights in ("float32", "float32", *others):
        warning = pytest.warns(UserWarning, match="its code reads weights itself")
        with nullcontext() if weights == "float32" else warning:
            oracle = load(model, weights=weights)
        assert oracle.weights == "as stored (100%)"
        assert torch.allclose(next_distribution(oracle), expected, atol=1e-4)
    assert len(packed) == 1 + len(others)
