"""Checks of free memory: machine, control groups and memory of model weights."""

from pathlib import Path

import pytest
import torch

from models.tiny_gguf import write_gguf
from models.tiny_pretrained import save_tiny, tiny_model
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.models.hub import memory
from trialogue.models.hub.memory import conversion_size, free_memory, require_memory
from trialogue.models.hub.pretrained import load_pretrained
from trialogue.models.packed.formats import available_formats

MACHINE = "MemTotal: 900 kB\nMemAvailable: 800 kB\nSwapFree: 100 kB\n"


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Simulate a machine with 900 kB of free memory and without control groups."""
    monkeypatch.setattr(memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "_GROUPS", tmp_path / "groups")
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(MACHINE)
    return tmp_path


def group(folder: Path, limit: str, used: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text("anon 1\ninactive_file 50000\nactive_file 1000\n")


def test_free_memory_of_a_machine(system):
    assert free_memory() == 900 * 1024
    (system / "proc/meminfo").write_text("nothing")
    assert free_memory() is None


def test_free_memory_of_control_groups(system):
    (system / "proc/self/cgroup").write_text("9:name=systemd:/\n0::/a/b\n")
    inner, outer = system / "groups/a/b", system / "groups/a"
    for folder, limit, used, expected in (
        (inner, "max", 200_000, 900 * 1024),
        (inner, "500000", 200_000, 500_000 - 200_000 + 51_000),
        (outer, "400000", 300_000, 400_000 - 300_000 + 51_000),
        (outer, "400000", 500_000, 0),
    ):
        group(folder, limit, used)
        assert free_memory() == expected


def test_free_memory_inside_a_container(system):
    (system / "proc/self/cgroup").write_text("0::/not/seen/from/here\n")
    group(system / "groups", "100000", 90_000)
    assert free_memory() == 61_000


def test_error_contains_needed_and_free_memory(system):
    require_memory("weights", "int8", 900 * 1024)
    with pytest.raises(
        InputError, match=r"weights='int8': its weights need 3\.0 GiB more .* 1 MiB are free"
    ) as refused:
        require_memory("weights", "int8", 3 * 2**30)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_conversion_size_counts_converted_weights(tmp_path, dtype):
    model = tiny_model().to(dtype)
    model.save_pretrained(tmp_path / "one")
    model.save_pretrained(tmp_path / "parts", max_shard_size="20KB")
    assert (tmp_path / "parts/model.safetensors.index.json").is_file()
    numbers = sum(weight.numel() for weight in model.parameters())
    for folder in ("one", "parts"):
        assert conversion_size(tmp_path / folder, dtype) == 0
        other = torch.bfloat16 if dtype == torch.float32 else torch.float32
        assert conversion_size(tmp_path / folder, other) == numbers * other.itemsize
    assert conversion_size(tmp_path / "nowhere", dtype) == 0
    (tmp_path / "one/model.safetensors").write_bytes(b"nothing")
    assert conversion_size(tmp_path / "one", dtype) == 0


def test_memory_is_checked_before_loading_and_packing(tmp_path, monkeypatch):
    stored, half = save_tiny(tmp_path / "stored"), save_tiny(tmp_path / "half")
    tiny_model().bfloat16().save_pretrained(half)
    write_gguf(tmp_path / "file.gguf")
    numbers = sum(weight.numel() for weight in tiny_model().parameters())

    def set_free_memory(free: int) -> None:
        monkeypatch.setattr(memory, "free_memory", lambda: free)

    set_free_memory(4 * numbers - 1)
    expect_error(r"model=.*need", load_pretrained, half, device="cpu", packed=False)
    load_pretrained(stored, device="cpu", packed=False)
    set_free_memory(4 * numbers)
    load_pretrained(half, device="cpu", packed=False)
    set_free_memory(1000)
    expect_error(r"model=.*need", load_pretrained, tmp_path / "file.gguf", device="cpu", packed=False)
    if "int8" in available_formats():
        for model in (stored, tmp_path / "file.gguf"):
            for weights in ("float32", "int8", "auto"):
                with pytest.raises(InputError, match=f"weights='{weights}'.*need"):
                    load_pretrained(model, device="cpu", weights=weights)
