"""Workers make the clones that one process makes, whether they see its folder or not."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from test_making import STORIES, content, run

from executors.elsewhere import Elsewhere
from trialogue.data import Clones
from trialogue.errors import InputError
from trialogue.executors import EXECUTORS
from trialogue.executors.folders import SharedFolder
from trialogue.generation.cloning.making import _making


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "stories.txt"
    path.write_text(STORIES, encoding="utf-8")
    return path


def files(out: Path) -> set[str]:
    """What is kept of the making of clones, but for who is at work."""
    made = (path for path in (out / "making").rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(out)) for path in made}


def chains(out: Path) -> dict[str, dict[str, Any]]:
    """Where the chains of each clone stand."""
    kept = (out / "making" / "chains").glob("*.safetensors")
    return {path.name: {name: value.tolist() for name, value in load_file(path).items()} for path in kept}


def test_a_worker_has_the_threads_that_are_asked_for(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    monkeypatch.setattr(torch, "set_num_threads", threads.append)
    assert run(text, tmp_path / "out", layers="1", executor="elsewhere", threads=3) == 0
    assert threads == [3, 3]


def test_processes_make_what_one_does(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(text, tmp_path / "alone") == 0
    assert run(text, tmp_path / "apart", workers=2) == 0
    assert content(tmp_path / "apart") == content(tmp_path / "alone")
    assert files(tmp_path / "apart") == files(tmp_path / "alone")
    table = capsys.readouterr().out.rpartition("held-out")[0]
    assert table.rindex("text") < table.rindex("layers-1") < table.rindex("layers-2")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_made_elsewhere_comes_back_and_goes_on(
    workers: int, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedFolder, "shared", False)
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    assert run(text, tmp_path / "alone") == 0
    assert run(text, tmp_path / "apart", executor="elsewhere", workers=workers) == 0
    assert content(tmp_path / "apart") == content(tmp_path / "alone")
    assert files(tmp_path / "apart") == files(tmp_path / "alone")
    # More sweeps go on from what came back, here as there.
    assert run(text, tmp_path / "alone", sweeps=10) == 0
    assert run(text, tmp_path / "apart", sweeps=10, executor="elsewhere", workers=workers) == 0
    assert content(tmp_path / "apart") == content(tmp_path / "alone")
    assert chains(tmp_path / "apart") == chains(tmp_path / "alone") != {}
    assert all(clone.sweeps in (None, 0, 10) for clone in Clones(tmp_path / "apart"))


def test_a_worker_that_cannot_begin_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with SharedFolder(tmp_path / "work").open() as folder:
        pass
    maker: Any = None
    # A file is where the second one's folder is to be. While the error is held, so is all that it went through.
    with pytest.raises(InputError, match="trialogue-") as error:
        _making(maker, folder, {"networks": b"", "networks/layers-1": b""})
    assert error.value.field == "path"
    assert list(tmp_path.iterdir()) == [tmp_path / "work"]
