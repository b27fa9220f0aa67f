"""What actors are asked and what is made of their deaths, on a cluster that does as it is told."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import trialogue
from trialogue.errors import InputError
from trialogue.executors import executor_of
from trialogue.executors.ray_cluster import RayCluster, _actor, _Actors
from trialogue.source_code import source_code

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")

OWN = {"version": trialogue.__version__, **source_code()}
DEAD = ray.exceptions.ActorDiedError()


class Actor:
    """The actor `number` of a cluster: what is asked of it is a reference, answered when it is waited for."""

    def __init__(self, cluster: "Cluster", number: int) -> None:
        self.cluster, self.number = cluster, number

    def __getattr__(self, method: str) -> Any:
        def remote(*arguments: Any) -> tuple[int, str, Any]:
            self.cluster.asked.append((self.number, method))
            return self.number, method, arguments[0] if method == "do" else None

        return SimpleNamespace(remote=remote)


class Cluster:
    """What a crew asks of Ray. `answer` gives what an actor's method returns for an item, or the error it ends with."""

    exceptions, cloudpickle = ray.exceptions, ray.cloudpickle

    def __init__(self, answer: Callable[[int, str, Any], Any], silences: int = 0, **has: float) -> None:
        self.answer, self.silences, self.has = answer, silences, has
        self.asked: list[tuple[int, str]] = []
        self.hired: list[Actor] = []
        self.shares: list[float] = []
        self.processors: list[int] = []

    def crew(self, wanted: int) -> _Actors:
        return _Actors(self, "ray", lambda: abs, wanted, 0.0, 1)

    def remote(self, **_: int) -> Callable[[type], "Cluster"]:
        return lambda _: self

    def options(self, *, num_cpus: int, num_gpus: float) -> Any:
        self.shares.append(num_gpus)
        self.processors.append(num_cpus)

        def hire() -> Actor:
            self.hired.append(Actor(self, len(self.hired)))
            return self.hired[-1]

        return SimpleNamespace(remote=hire)

    def put(self, value: Any) -> Any:
        return value

    def is_initialized(self) -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": self.has}, {"Alive": False, "Resources": {"CPU": 99, "GPU": 99}}]

    def kill(self, actor: Actor) -> None:
        pass

    def wait(self, awaited: Sequence[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        assert timeout > 0
        if self.silences:
            self.silences -= 1
            return [], list(awaited)
        return list(awaited[:num_returns]), list(awaited[num_returns:])

    def get(self, reference: tuple[int, str, Any]) -> Any:
        answer = self.answer(*reference)
        if isinstance(answer, Exception):
            raise answer
        return answer


def healthy(number: int, method: str, item: Any) -> Any:
    """What a worker answers that nothing happens to."""
    del number
    return OWN if method == "code" else item


@pytest.mark.parametrize("method", ["code", "begin"])
def test_a_node_may_take_as_many_with_it_as_are_wanted_and_they_begin_elsewhere(method: str) -> None:
    """Ray sends workers to a dead node until it knows: a whole crew dies at once, and that is not yet a reason."""

    def answer(number: int, asked: str, item: Any) -> Any:
        return DEAD if asked == method and number < 15 else healthy(number, asked, item)

    lanes = [[(lane, item) for item in range(2)] for lane in range(4)]
    done = list(Cluster(answer).crew(4).done(lanes))
    assert sorted(item for item, _ in done) == [item for lane in lanes for item in lane]


def test_workers_none_of_which_begins_are_named() -> None:
    cluster = Cluster(lambda number, method, _: DEAD if method == "begin" else healthy(number, method, None))
    with pytest.raises(InputError, match="16 workers died before they started"):
        list(cluster.crew(4).done([[lane] for lane in range(4)]))
    assert len(cluster.hired) <= 16 + 4


@pytest.mark.parametrize(
    "error",
    [
        ray.exceptions.OutOfMemoryError("low on memory"),
        ray.exceptions.NodeDiedError("the node died"),
        ray.exceptions.LocalRayletDiedError(),
        ray.exceptions.WorkerCrashedError(),
        ray.exceptions.ObjectLostError("0" * 56, None, ""),
        DEAD,
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_worker_dies_of_another_does_its_item(error: Exception) -> None:
    def answer(number: int, method: str, item: Any) -> Any:
        return error if method == "do" and number == 0 else healthy(number, method, item)

    assert list(Cluster(answer).crew(1).done([[1, 2]])) == [(1, 1), (2, 2)]


def test_an_item_that_kills_is_named_in_short() -> None:
    item = tuple((place, 0) for place in range(1000))
    cluster = Cluster(lambda number, method, _: DEAD if method == "do" else healthy(number, method, None))
    with pytest.raises(InputError, match=r"4 workers died while processing \(\(0, 0\)") as error:
        list(cluster.crew(4).done([[item]]))
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    "code",
    [
        {**OWN, "version": "0.0.9"},
        {**OWN, "commit": "0" * 40},
        {**OWN, "changes_sha256": "0" * 64},
        {"version": OWN["version"]} if len(OWN) > 1 else {**OWN, "commit": "0" * 40},
        None,
    ],
)
def test_a_worker_of_other_code_is_refused(code: dict[str, str] | None) -> None:
    cluster = Cluster(lambda *_: code)
    with pytest.raises(
        InputError, match=r"install (the same trialogue .* in this process|trialogue .* on every node)"
    ):
        list(cluster.crew(1).done([[1]]))


def test_a_cluster_without_room_is_told_of_once_and_waited_for() -> None:
    with pytest.warns(RuntimeWarning, match="no worker has started for 30 s") as told:
        assert list(Cluster(healthy, silences=3).crew(1).done([[1]])) == [(1, 1)]
    assert len(told) == 1


def test_who_raised_clears_up_too() -> None:
    refused = ray.exceptions.RayTaskError("do", "", InputError("coin", 1, "use another"))

    def answer(number: int, method: str, item: Any) -> Any:
        return refused if method == "do" else healthy(number, method, item)

    cluster = Cluster(answer)
    crew = cluster.crew(1)
    with pytest.raises(InputError, match="coin=1: use another"):
        list(crew.done([[1]]))
    crew.end()
    assert cluster.asked[-1] == (0, "end")


@pytest.mark.parametrize(
    ("gpus", "workers", "share"), [(3, 5, 1 / 2), (2, 5, 1 / 3), (4, 2, 1.0), (1, 4, 1 / 4), (0, 4, 0.0)]
)
def test_workers_share_gpus_evenly(
    gpus: int, workers: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(healthy, CPU=8, GPU=gpus)
    monkeypatch.setitem(sys.modules, "ray", cluster)
    with RayCluster(workers=workers).crew(lambda: abs, 9, accelerated=True) as crew:
        assert list(crew.done([[1]])) == [(1, 1)]
    assert cluster.shares == [share]


@pytest.mark.parametrize(("threads", "hired"), [(1, 8), (3, 2), (8, 1)])
def test_each_worker_has_the_processors_of_its_threads(
    threads: int, hired: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(healthy, CPU=8)
    monkeypatch.setitem(sys.modules, "ray", cluster)
    with executor_of("ray", None, threads).crew(lambda: abs, 9) as crew:
        assert len(list(crew.done([[item] for item in range(9)]))) == 9
    assert cluster.processors == [threads]
    assert len(cluster.hired) == hired


@pytest.mark.parametrize("threads", [1, 3])
def test_a_worker_begins_with_its_threads(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # back where it was, as a worker goes elsewhere
    worker = _actor(SimpleNamespace(remote=lambda **_: lambda of: of))()
    before = torch.get_num_threads()
    try:
        worker.begin(
            ray.cloudpickle.dumps(lambda: lambda item: (item, torch.get_num_threads())), [], ".", threads
        )
        assert worker.do(7) == (7, threads)
    finally:
        torch.set_num_threads(before)


def test_no_accelerated_worker_has_more_threads_than_are_beside_a_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(healthy, CPU=4, GPU=1)
    monkeypatch.setattr(
        cluster,
        "nodes",
        lambda: [
            {"Alive": True, "Resources": {"CPU": 4, "GPU": 1}},
            {"Alive": True, "Resources": {"CPU": 16}},
        ],
    )
    monkeypatch.setitem(sys.modules, "ray", cluster)
    with (
        pytest.raises(InputError, match="no node has 8 CPUs and a GPU"),
        executor_of("ray", None, 8).crew(lambda: abs, 9, accelerated=True),
    ):
        pass
    with executor_of("ray", None, 4).crew(lambda: abs, 9, accelerated=True):
        pass


def test_no_worker_has_more_threads_than_a_node_has_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", Cluster(healthy, CPU=8))
    with (
        pytest.raises(InputError, match="no node has 9 CPUs"),
        executor_of("ray", None, 9).crew(lambda: abs, 9),
    ):
        pass
