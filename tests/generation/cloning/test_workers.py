"""Clones made by several workers equal those made by one process, with and without a shared folder."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from test_making import STORIES, read_clones, run

from executors.elsewhere import Elsewhere
from trialogue.data import Clones
from trialogue.errors import InputError
from trialogue.executors import EXECUTORS
from trialogue.executors.folders import SharedFolder
from trialogue.generation.cloning.making import _start_worker


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text(STORIES, encoding="utf-8")
    return path


def files(out: Path) -> set[str]:
    """Return the files in the folder of a run, without the lock."""
    made = (path for path in (out / "making").rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(out)) for path in made}


def chains(out: Path) -> dict[str, dict[str, Any]]:
    """Return the saved states of the chains of each clone."""
    kept = (out / "making" / "chains").glob("*.safetensors")
    return {path.name: {name: value.tolist() for name, value in load_file(path).items()} for path in kept}


def test_a_worker_uses_the_requested_threads(text, tmp_path, monkeypatch):
    threads: list[int] = []
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    assert run(text, tmp_path / "out", layers="1", executor="elsewhere", threads=3) == 0
    assert threads == [3, 3]


def test_two_processes_make_the_same_clones_as_one(text, tmp_path, capsys):
    assert run(text, tmp_path / "alone") == 0
    assert run(text, tmp_path / "apart", workers=2) == 0
    assert read_clones(tmp_path / "apart") == read_clones(tmp_path / "alone")
    assert files(tmp_path / "apart") == files(tmp_path / "alone")
    table = capsys.readouterr().out.rpartition("held-out")[0]
    assert table.rindex("text") < table.rindex("layers-1") < table.rindex("layers-2")


@pytest.mark.parametrize("workers", [1, 2])
def test_clones_made_without_a_shared_folder_are_returned_and_resumed(workers, text, tmp_path, monkeypatch):
    monkeypatch.setattr(SharedFolder, "shared", False)
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    assert run(text, tmp_path / "alone") == 0
    assert run(text, tmp_path / "apart", executor="elsewhere", workers=workers) == 0
    assert read_clones(tmp_path / "apart") == read_clones(tmp_path / "alone")
    assert files(tmp_path / "apart") == files(tmp_path / "alone")
    # Further sweeps continue from the returned states.
    assert run(text, tmp_path / "alone", sweeps=10) == 0
    assert run(text, tmp_path / "apart", sweeps=10, executor="elsewhere", workers=workers) == 0
    assert read_clones(tmp_path / "apart") == read_clones(tmp_path / "alone")
    assert chains(tmp_path / "apart") == chains(tmp_path / "alone") != {}
    assert all(clone.sweeps in (None, 0, 10) for clone in Clones(tmp_path / "apart"))


def test_a_worker_that_cannot_start_leaves_no_folder(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with SharedFolder(tmp_path / "work").open() as folder:
        pass
    maker: Any = None
    # A file occupies the path of the second folder. The traceback keeps all objects while the error is held.
    with pytest.raises(InputError, match="trialogue-") as error:
        _start_worker(maker, folder, {"networks": b"", "networks/layers-1": b""})
    assert error.value.field == "path"
    assert list(tmp_path.iterdir()) == [tmp_path / "work"]
