"""Workers make the clones that one process makes, whether they see its folder or not."""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_making import STORIES, content, run

from trialogue.data import Clones
from trialogue.executors import EXECUTORS, Crew, Executor, Start
from trialogue.executors.folders import SharedFolder


class Elsewhere(Executor):
    """Does all work here, and handles it as if it went to another machine and came back."""

    @contextmanager
    def crew(self, start: Start, lanes: int, *, accelerated: bool = False) -> Iterator[Crew]:
        yield Alone(pickle.loads(pickle.dumps(start)))


class Alone(Crew):
    def __init__(self, start: Start) -> None:
        self.do = start()

    def done(self, lanes: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, Any]]:
        for lane in reversed(lanes):
            yield from ((item, pickle.loads(pickle.dumps(self.do(item)))) for item in lane)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "stories.txt"
    path.write_text(STORIES, encoding="utf-8")
    return path


def files(out: Path) -> set[str]:
    """What is kept of the making of clones, but for who is at work."""
    made = (path for path in (out / "making").rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(out)) for path in made}


def test_processes_make_what_one_does(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(text, tmp_path / "alone") == 0
    assert run(text, tmp_path / "apart", workers=2) == 0
    assert content(tmp_path / "apart") == content(tmp_path / "alone")
    assert files(tmp_path / "apart") == files(tmp_path / "alone")
    table = capsys.readouterr().out.rpartition("held-out")[0]
    assert table.rindex("text") < table.rindex("layers-1") < table.rindex("layers-2")


def test_what_is_made_elsewhere_comes_back_and_goes_on(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedFolder, "shared", False)
    monkeypatch.setitem(EXECUTORS, "elsewhere", Elsewhere)
    assert run(text, tmp_path / "alone") == 0
    assert run(text, tmp_path / "apart", executor="elsewhere") == 0
    assert content(tmp_path / "apart") == content(tmp_path / "alone")
    assert files(tmp_path / "apart") == files(tmp_path / "alone")
    # More sweeps go on from what came back, here as there.
    assert run(text, tmp_path / "alone", sweeps=10) == 0
    assert run(text, tmp_path / "apart", sweeps=10, executor="elsewhere") == 0
    assert content(tmp_path / "apart") == content(tmp_path / "alone")
    assert all(clone.sweeps in (None, 0, 10) for clone in Clones(tmp_path / "apart"))
