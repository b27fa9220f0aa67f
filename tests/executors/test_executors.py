"""An executor is named by a word, and what is wrong with the word is said in one line."""

import os
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
import torch

from trialogue.cli import main
from trialogue.errors import InputError
from trialogue.executors import executor_of
from trialogue.executors.folders import SharedFolder
from trialogue.executors.local import Local


def squares(folder: Path) -> Callable[[int], tuple[int, int]]:
    """What squares an item, with the threads that it began with."""
    (folder / f"begun-{len(list(folder.iterdir()))}").touch()

    torch.set_num_threads(2)

    def square(item: int) -> tuple[int, int]:
        if item < 0:
            raise InputError("item", item, "use another")
        return item**2, torch.get_num_threads()

    return square


def test_processes_do_every_item_once_and_begin_once(tmp_path: Path) -> None:
    executor = executor_of("local", 2)
    assert isinstance(executor, Local)
    assert not executor.alone(3)
    assert executor.alone(1)
    assert executor_of("local").alone(3)
    with executor.crew(partial(squares, tmp_path), 3) as crew:
        for _ in range(2):
            done = list(crew.done([[1, 2], [3], [4, 5]]))
            assert sorted(done) == [(item, (item**2, 2)) for item in range(1, 6)]
        assert len(list(tmp_path.iterdir())) <= 2
        with pytest.raises(InputError, match="item=-1: use another"):
            list(crew.done([[1], [-1]]))


def placed() -> Callable[[int], tuple[int, str]]:
    """What says which process it is in, and where that is."""
    return lambda _: (os.getpid(), str(Path.cwd()))


def test_processes_that_are_hired_again_work_where_they_are_hired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: list[set[int]] = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        with executor_of("local", 2).crew(placed, 2) as crew:
            found = [said for _, said in crew.done([[1], [2]])]
        assert {place for _, place in found} == {str(folder)}
        processes.append({process for process, _ in found})
    assert processes[0] & processes[1]


def growing(folder: Path) -> Callable[[int], None]:
    """What loads 350 MB over its second item, and takes longer over it than growth goes unseen."""
    (folder / f"begun-{uuid4().hex}").touch()
    kept: list[bytes] = []

    def grow(item: int) -> None:
        del item
        if kept:
            time.sleep(1.2)
        kept.append(b"." * (350 * 2**20 if len(kept) == 1 else 1))

    return grow


# Where loky ends one all the same, it warns in a thread that has to go on.
@pytest.mark.filterwarnings("ignore:A worker stopped:UserWarning")
def test_a_process_keeps_what_it_has_loaded(tmp_path: Path) -> None:
    with executor_of("local", 2).crew(partial(growing, tmp_path), 6) as crew:
        assert len(list(crew.done([[item] for item in range(6)]))) == 6
    assert len(list(tmp_path.iterdir())) <= 2


@pytest.mark.parametrize(
    ("word", "line"),
    [
        ("rya", "executor='rya': no such executor: did you mean ray?"),
        ("local:8", "executor='local:8': leave out the address: local has none"),
        ("local:", "executor='local:': use local:ADDRESS, or local without a colon"),
        ("ray://", "executor='ray://': use ray:ADDRESS, or ray without a colon"),
    ],
)
def test_a_wrong_word_is_named(word: str, line: str) -> None:
    with pytest.raises(InputError) as error:
        executor_of(word)
    assert str(error.value) == line


@pytest.mark.parametrize("word", ["ray", "ray:auto", "ray://head:10001"])
def test_what_is_not_installed_is_named_with_its_extra(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError) as error:
        executor_of(word)
    hint = "it is not installed: pip install 'trialogue[ray]'"
    assert (error.value.value, error.value.hint) == (word, hint)


@pytest.mark.parametrize("form", ["ray:{}", "ray://{}"])
def test_an_address_where_no_cluster_answers_is_named(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")
    with socket.socket() as taken:  # nobody listens
        taken.bind(("127.0.0.1", 0))
        word = form.format(f"127.0.0.1:{taken.getsockname()[1]}")
        arguments = ["run", "biased-coin", "--executor", word, "--results", str(tmp_path)]
        assert main(arguments) == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith(f"trialogue: error: executor='{word}': start a cluster with")
    assert complaint.count("\n") == 1


def test_an_address_without_a_port_is_named() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")
    with (
        pytest.raises(InputError, match="executor='ray://head': use ray://HOST:PORT"),
        executor_of("ray://head").crew(lambda: lambda item: item, 1),
    ):
        pass


def test_a_folder_is_shared_only_with_those_who_see_it(tmp_path: Path) -> None:
    with SharedFolder(tmp_path).open() as folder:
        assert folder.of_worker() == tmp_path
        assert folder.shared
    elsewhere = folder.of_worker()
    assert elsewhere != tmp_path
    assert elsewhere == folder.of_worker()
    del folder
    assert not elsewhere.exists()
    assert list(tmp_path.iterdir()) == []


def threads_of(item: int) -> int:
    return torch.get_num_threads() + item


@pytest.mark.parametrize("threads", [1, 2])
def test_workers_have_the_threads_that_are_asked_for(threads: int) -> None:
    with executor_of("local", 2, threads).crew(lambda: threads_of, 2) as crew:
        assert sorted(crew.done([[0], [1]])) == [(0, threads), (1, threads + 1)]
