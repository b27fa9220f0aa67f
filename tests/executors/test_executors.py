"""Executors are selected by a string, and an invalid string raises a one-line error."""

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

from refusals import expect_error
from trialogue.cli import main
from trialogue.errors import InputError
from trialogue.executors import make_executor
from trialogue.executors.folders import SharedFolder
from trialogue.executors.local import Local


def make_square(folder: Path) -> Callable[[int], tuple[int, int]]:
    """Return a function that returns the square of an item and the number of threads."""
    (folder / f"started-{len(list(folder.iterdir()))}").touch()

    torch.set_num_threads(2)

    def square(item: int) -> tuple[int, int]:
        if item < 0:
            raise InputError("item", item, "use another")
        return item**2, torch.get_num_threads()

    return square


def test_every_item_is_processed_once_by_at_most_two_processes(tmp_path):
    executor = make_executor("local", 2)
    assert isinstance(executor, Local)
    assert not executor.alone(3)
    assert executor.alone(1)
    assert make_executor("local").alone(3)
    with executor.start_workers(partial(make_square, tmp_path), 3) as workers:
        for _ in range(2):
            done = list(workers.done([[1, 2], [3], [4, 5]]))
            assert sorted(done) == [(item, (item**2, 2)) for item in range(1, 6)]
        assert len(list(tmp_path.iterdir())) <= 2
        expect_error("item=-1: use another", list, workers.done([[1], [-1]]))


def make_locate() -> Callable[[int], tuple[int, str]]:
    """Return a function that returns its process id and working directory."""
    return lambda _: (os.getpid(), str(Path.cwd()))


def test_reused_processes_change_to_the_current_working_directory(tmp_path, monkeypatch):
    processes: list[set[int]] = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        with make_executor("local", 2).start_workers(make_locate, 2) as workers:
            results = [result for _, result in workers.done([[1], [2]])]
        assert {directory for _, directory in results} == {str(folder)}
        processes.append({process for process, _ in results})
    assert processes[0] & processes[1]


def make_grow(folder: Path) -> Callable[[int], None]:
    """Return a function that allocates 350 MB for its second item and waits for the memory check of loky."""
    (folder / f"started-{uuid4().hex}").touch()
    allocated: list[bytes] = []

    def grow(item: int) -> None:
        del item
        if allocated:
            time.sleep(1.2)
        allocated.append(b"." * (350 * 2**20 if len(allocated) == 1 else 1))

    return grow


# If loky ends a worker despite this, it warns in a thread, and an error there would stop the pool.
@pytest.mark.filterwarnings("ignore:A worker stopped:UserWarning")
def test_a_process_is_not_restarted_when_it_uses_more_memory(tmp_path):
    with make_executor("local", 2).start_workers(partial(make_grow, tmp_path), 6) as workers:
        assert len(list(workers.done([[item] for item in range(6)]))) == 6
    assert len(list(tmp_path.iterdir())) <= 2


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("rya", "executor='rya': no such executor: did you mean ray?"),
        ("local:8", "executor='local:8': leave out the address: local has none"),
        ("local:", "executor='local:': use local:ADDRESS, or local without a colon"),
        ("ray://", "executor='ray://': use ray:ADDRESS, or ray without a colon"),
    ],
)
def test_an_invalid_name_is_reported(name, line):
    assert str(expect_error("", make_executor, name)) == line


@pytest.mark.parametrize("name", ["ray", "ray:auto", "ray://head:10001"])
def test_a_missing_extra_is_reported(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    error = expect_error("", make_executor, name)
    hint = "it is not installed: pip install 'trialogue[ray]'"
    assert (error.value, error.hint) == (name, hint)


@pytest.mark.parametrize("form", ["ray:{}", "ray://{}"])
def test_an_address_without_a_cluster_is_reported(form, tmp_path, capsys):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")
    with socket.socket() as taken:  # The port is bound, and no process listens on it.
        taken.bind(("127.0.0.1", 0))
        name = form.format(f"127.0.0.1:{taken.getsockname()[1]}")
        arguments = ["run", "biased-coin", "--executor", name, "--results", str(tmp_path)]
        assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"trialogue: error: executor='{name}': start a cluster with")
    assert message.count("\n") == 1


def test_an_address_without_a_port_is_reported():
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")
    with (
        pytest.raises(InputError, match="executor='ray://head': use ray://HOST:PORT"),
        make_executor("ray://head").start_workers(lambda: lambda item: item, 1),
    ):
        pass


def test_a_folder_is_shared_only_with_workers_that_can_access_it(tmp_path):
    with SharedFolder(tmp_path).open() as folder:
        assert folder.of_worker() == tmp_path
        assert folder.shared
    elsewhere = folder.of_worker()
    assert elsewhere != tmp_path
    assert elsewhere == folder.of_worker()
    del folder
    assert not elsewhere.exists()
    assert list(tmp_path.iterdir()) == []


def add_threads(item: int) -> int:
    return torch.get_num_threads() + item


@pytest.mark.parametrize("threads", [1, 2])
def test_workers_have_the_requested_number_of_threads(threads):
    with make_executor("local", 2, threads).start_workers(lambda: add_threads, 2) as workers:
        assert sorted(workers.done([[0], [1]])) == [(0, threads), (1, threads + 1)]
