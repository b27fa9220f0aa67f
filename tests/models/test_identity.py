"""Description of the model in the records of results."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from models.tiny_gguf import write_gguf
from models.tiny_pretrained import save_tiny, tiny_model, tiny_oracle
from trialogue.models.hub.pretrained import load_pretrained


def checksum(file: Path) -> str:
    return "sha256 " + hashlib.sha256(file.read_bytes()).hexdigest()


def test_single_file_is_identified_by_checksum(tmp_path):
    folder, file = save_tiny(tmp_path / "model"), tmp_path / "model.gguf"
    write_gguf(file)
    packed = load_pretrained(folder, device="cpu")
    assert packed.describe() == {
        "model": str(folder),
        "weights": packed.weights,
        "files": checksum(folder / "model.safetensors"),
    }
    assert load_pretrained(file, device="cpu", packed=False).describe()["files"] == checksum(file)
    assert tiny_oracle().describe() == {"model": "tiny", "weights": "as stored (100%)", "files": ""}


def test_several_files_are_identified_by_combined_checksum(tmp_path):
    folder = save_tiny(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    tiny_model().save_pretrained(folder, max_shard_size="20KB")
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    assert len(names) > 1
    try:
        written = subprocess.run(["sha256sum", *names], cwd=folder, capture_output=True, check=True).stdout
    except FileNotFoundError:
        pytest.skip("there is no sha256sum")
    assert load_pretrained(folder, device="cpu").describe()["files"] == (
        "sha256 " + hashlib.sha256(written).hexdigest()
    )
