"""Tests of inspections with workers, which must have the same results as a single process."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from executors.elsewhere import Elsewhere, InProcessCrew
from models.tiny_pretrained import save_tiny
from trialogue import cli
from trialogue.executors import EXECUTORS, Start, Workers
from trialogue.executors.folders import SharedFolder
from trialogue.inspection.subject import Subject

QUICK = ("--measures", "copying", "brackets", "context", "--effort", "0.1")
TEXT = "the cat sat on the mat, and the dog ran after the cat. "


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Folder with two checkpoints and their inspection by one process without a text."""
    folder = tmp_path_factory.mktemp("apart")
    for step in (5, 10):
        save_tiny(folder / "training" / f"checkpoint-{step}", seed=step)
    (folder / "text.txt").write_text(TEXT * 200, encoding="utf-8")
    assert inspect(folder, "alone") == 0
    return folder


def inspect(workspace: Path, out: Path | str, *words: object) -> int:
    training = ("inspect", workspace / "training", "--out", workspace / out, *QUICK, *words)
    return cli.main([*map(str, training)])


def read_inspection(out: Path) -> Any:
    """Return an inspection without its run times."""
    return json.loads(re.sub(r'"seconds": [\d.]+', '"seconds": 0', (out / "inspection.json").read_text()))


def saved_files(out: Path) -> dict[str, int]:
    """Return the result files with their modification times."""
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in out.glob("work/*/*.json")}


def test_remote_workers_and_one_process_have_equal_results(workspace, tmp_path, capfd, monkeypatch):
    opened: list[str] = []
    load = Subject.load

    def open_and_count(where: str, **settings: Any) -> Subject:
        opened.append(where)
        return load(where, **settings)

    monkeypatch.setattr(Subject, "load", open_and_count)
    monkeypatch.setattr(SharedFolder, "shared", False)
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    assert inspect(workspace, tmp_path, "--executor", "elsewhere", "--workers", 2) == 0
    out, err = capfd.readouterr()
    assert read_inspection(tmp_path) == read_inspection(workspace / "alone")
    assert set(saved_files(tmp_path)) == set(saved_files(workspace / "alone"))
    assert "context: skipped: it needs a text" in out
    assert err.count("tokens, ") == err.count(" of one worker") == 2
    assert len(re.findall(r": (?:copying|brackets)(?: of random weights)?: \d+ s\n", err)) == 6
    # Each worker keeps its checkpoint loaded between planning and measuring.
    assert len(opened) <= 2 + 2 * 2
    assert list(tmp_path.glob("work/.*")) == []


class InterruptedExecutor(Elsewhere):
    """Executor that stops the run at the third task."""

    @contextmanager
    def start_workers(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Workers]:
        with super().start_workers(start, lanes) as workers:
            assert isinstance(workers, InProcessCrew)
            yield InterruptedCrew(workers.workers)


class InterruptedCrew(InProcessCrew):
    def done(self, lanes: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
        for number, one in enumerate(super().done(lanes)):
            if number == 2:
                raise KeyboardInterrupt
            yield one


def test_stored_results_are_not_measured_again(workspace, tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(EXECUTORS, "mortal", InterruptedExecutor)
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    assert inspect(workspace, tmp_path, "--executor", "mortal") == 130
    assert "run the same command to continue" in capfd.readouterr().err
    there = {path: when for path, when in saved_files(tmp_path).items() if "context" not in path}
    assert len(there) == 2
    assert inspect(workspace, tmp_path, "--executor", "elsewhere") == 0
    assert len(re.findall(r": \d+ s\n", capfd.readouterr().err)) == 4
    assert read_inspection(tmp_path) == read_inspection(workspace / "alone")
    assert {path: saved_files(tmp_path)[path] for path in there} == there
    # No worker starts, because only `context` is missing and it requires a text.
    monkeypatch.delattr(Elsewhere, "start_workers")
    assert inspect(workspace, tmp_path, "--executor", "elsewhere") == 0


class OutdatedFilesExecutor(Elsewhere):
    """Executor whose workers find an outdated file."""

    @contextmanager
    def start_workers(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Workers]:
        path = Path(str(self.address))
        here = path.read_bytes()
        path.write_bytes(here.replace(b"cat", b"rat") if path.suffix == ".txt" else here[:-1] + b"\1")
        try:
            with super().start_workers(start, lanes) as workers:
                yield workers
        finally:
            path.write_bytes(here)


@pytest.mark.parametrize("file", ["text.txt", "training/checkpoint-10/model.safetensors"])
def test_workers_with_other_files_are_rejected(file, workspace, tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(EXECUTORS, "behind", OutdatedFilesExecutor)
    words = ("--text", workspace / "text.txt", "--executor", f"behind:{workspace / file}")
    assert inspect(workspace, tmp_path, *words) == 2
    last = capfd.readouterr().err.splitlines()[-1]
    assert last.startswith(f"trialogue: error: {'text' if file == 'text.txt' else 'model'}=")
    assert "a worker found different files at this path" in last
    assert saved_files(tmp_path) == {}
