"""Calls of Ray actors and the handling of their failures, on a simulated cluster."""

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import trialogue
from refusals import expect_error
from trialogue.errors import InputError
from trialogue.executors import make_executor
from trialogue.executors.ray_cluster import RayCluster, _actor, _Actors
from trialogue.source_code import source_code

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")

CODE = {"version": trialogue.__version__, **source_code()}
DEAD = ray.exceptions.ActorDiedError()


class Actor:
    """Actor `number` of a simulated cluster. A remote call returns a reference that `Cluster.get` resolves."""

    def __init__(self, cluster: "Cluster", number: int) -> None:
        self.cluster, self.number = cluster, number

    def __getattr__(self, method: str) -> Any:
        def remote(*arguments: Any) -> tuple[int, str, Any]:
            self.cluster.calls.append((self.number, method))
            return self.number, method, arguments[0] if method == "do" else None

        return SimpleNamespace(remote=remote)


class Cluster:
    """Simulation of the parts of Ray that workers use.

    Args:
        respond: Function of the number of the actor, the method and the item. It returns the result of the call, or
            the exception that the call raises.
        silences: Number of calls of `wait` that return no result.
        resources: Resources of the only node that is alive.
    """

    exceptions, cloudpickle = ray.exceptions, ray.cloudpickle

    def __init__(
        self, respond: Callable[[int, str, Any], Any], silences: int = 0, **resources: float
    ) -> None:
        self.respond, self.silences, self.resources = respond, silences, resources
        self.calls: list[tuple[int, str]] = []
        self.actors: list[Actor] = []
        self.shares: list[float] = []
        self.processors: list[int] = []

    def start_workers(self, workers: int) -> _Actors:
        return _Actors(self, "ray", lambda: abs, workers, 0.0, 1)

    def remote(self, **_: int) -> Callable[[type], "Cluster"]:
        return lambda _: self

    def options(self, *, num_cpus: int, num_gpus: float) -> Any:
        self.shares.append(num_gpus)
        self.processors.append(num_cpus)

        def create_actor() -> Actor:
            self.actors.append(Actor(self, len(self.actors)))
            return self.actors[-1]

        return SimpleNamespace(remote=create_actor)

    def put(self, value: Any) -> Any:
        return value

    def is_initialized(self) -> bool:
        return True

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"Alive": True, "Resources": self.resources},
            {"Alive": False, "Resources": {"CPU": 99, "GPU": 99}},
        ]

    def kill(self, actor: Actor) -> None:
        pass

    def wait(self, awaited: Sequence[Any], num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        assert timeout > 0
        if self.silences:
            self.silences -= 1
            return [], list(awaited)
        return list(awaited[:num_returns]), list(awaited[num_returns:])

    def get(self, reference: tuple[int, str, Any]) -> Any:
        result = self.respond(*reference)
        if isinstance(result, Exception):
            raise result
        return result


def healthy(number: int, method: str, item: Any) -> Any:
    """Return the result of a worker without failures."""
    del number
    return CODE if method == "code" else item


@pytest.mark.parametrize("method", ["code", "begin"])
def test_a_crew_that_dies_during_its_start_is_replaced(method):
    """Ray starts workers on a dead node until it detects the failure, so a whole workers can fail without an error."""

    def respond(number: int, called: str, item: Any) -> Any:
        return DEAD if called == method and number < 15 else healthy(number, called, item)

    lanes = [[(lane, item) for item in range(2)] for lane in range(4)]
    done = list(Cluster(respond).start_workers(4).done(lanes))
    assert sorted(item for item, _ in done) == [item for lane in lanes for item in lane]


def test_repeated_failures_to_start_are_reported():
    cluster = Cluster(lambda number, method, _: DEAD if method == "begin" else healthy(number, method, None))
    with pytest.raises(InputError, match="16 workers died before they started"):
        list(cluster.start_workers(4).done([[lane] for lane in range(4)]))
    assert len(cluster.actors) <= 16 + 4


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
def test_the_item_of_a_dead_worker_is_processed_by_another_worker(error):
    def respond(number: int, method: str, item: Any) -> Any:
        return error if method == "do" and number == 0 else healthy(number, method, item)

    assert list(Cluster(respond).start_workers(1).done([[1, 2]])) == [(1, 1), (2, 2)]


def test_an_item_that_kills_its_workers_is_reported_in_abbreviated_form():
    item = tuple((place, 0) for place in range(1000))
    cluster = Cluster(lambda number, method, _: DEAD if method == "do" else healthy(number, method, None))
    error = expect_error(
        r"4 workers died while processing \(\(0, 0\)", list, cluster.start_workers(4).done([[item]])
    )
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    "code",
    [
        {**CODE, "version": "0.0.9"},
        {**CODE, "commit": "0" * 40},
        {**CODE, "changes_sha256": "0" * 64},
        {"version": CODE["version"]} if len(CODE) > 1 else {**CODE, "commit": "0" * 40},
        None,
    ],
)
def test_a_worker_with_other_source_code_is_rejected(code):
    cluster = Cluster(lambda *_: code)
    with pytest.raises(
        InputError, match=r"install (the same trialogue .* in this process|trialogue .* on every node)"
    ):
        list(cluster.start_workers(1).done([[1]]))


def test_waiting_for_a_full_cluster_warns_once():
    with pytest.warns(RuntimeWarning, match="no worker has started for 30 s") as caught:
        assert list(Cluster(healthy, silences=3).start_workers(1).done([[1]])) == [(1, 1)]
    assert len(caught) == 1


def test_an_actor_that_raised_an_error_is_ended():
    raised = ray.exceptions.RayTaskError("do", "", InputError("coin", 1, "use another"))

    def respond(number: int, method: str, item: Any) -> Any:
        return raised if method == "do" else healthy(number, method, item)

    cluster = Cluster(respond)
    workers = cluster.start_workers(1)
    expect_error("coin=1: use another", list, workers.done([[1]]))
    workers.end()
    assert cluster.calls[-1] == (0, "end")


@pytest.mark.parametrize(
    ("gpus", "workers", "share"), [(3, 5, 1 / 2), (2, 5, 1 / 3), (4, 2, 1.0), (1, 4, 1 / 4), (0, 4, 0.0)]
)
def test_workers_share_gpus_evenly(gpus, workers, share, monkeypatch):
    cluster = Cluster(healthy, CPU=8, GPU=gpus)
    monkeypatch.setitem(sys.modules, "ray", cluster)
    with RayCluster(workers=workers).start_workers(lambda: abs, 9, accelerated=True) as workers:
        assert list(workers.done([[1]])) == [(1, 1)]
    assert cluster.shares == [share]


@pytest.mark.parametrize(("threads", "expected"), [(1, 8), (3, 2), (8, 1)])
def test_each_worker_reserves_one_processor_per_thread(threads, expected, monkeypatch):
    cluster = Cluster(healthy, CPU=8)
    monkeypatch.setitem(sys.modules, "ray", cluster)
    with make_executor("ray", None, threads).start_workers(lambda: abs, 9) as workers:
        assert len(list(workers.done([[item] for item in range(9)]))) == 9
    assert cluster.processors == [threads]
    assert len(cluster.actors) == expected


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_worker_starts_with_the_requested_number_of_threads(threads, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # A worker changes the working directory, and monkeypatch restores it.
    worker = _actor(SimpleNamespace(remote=lambda **_: lambda of: of))()
    make = ray.cloudpickle.dumps(lambda: lambda item: (item, torch.get_num_threads()))
    worker.begin(make, [], ".", threads)
    assert worker.do(7) == (7, threads)


def test_threads_of_an_accelerated_worker_are_limited_to_the_processors_of_gpu_nodes(monkeypatch):
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
        make_executor("ray", None, 8).start_workers(lambda: abs, 9, accelerated=True),
    ):
        pass
    with make_executor("ray", None, 4).start_workers(lambda: abs, 9, accelerated=True):
        pass


def test_threads_of_a_worker_are_limited_to_the_processors_of_a_node(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", Cluster(healthy, CPU=8))
    with (
        pytest.raises(InputError, match="no node has 9 CPUs"),
        make_executor("ray", None, 9).start_workers(lambda: abs, 9),
    ):
        pass
