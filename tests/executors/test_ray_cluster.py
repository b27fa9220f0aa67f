"""On a Ray cluster nothing is lost with a worker or a node, nothing done twice, and rows are those of one process."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import biased_coin
import psutil
import pytest
from biased_coin import STUDY, Config

from executors.counted import gated
from trialogue.executors import Executor, executor_of
from trialogue_lab.ledger.runs.drafts import Draft
from trialogue_lab.ledger.runs.execution import execute

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")

pytestmark = pytest.mark.filterwarnings("default")  # Ray's own
SEEDS = (0, 1, 2, 3, 4, 5)


class Nodes:
    """A cluster of a head without processors, and nodes that can be killed."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.nodes: dict[str, Any] = {}

    def at_least(self, count: int) -> None:
        """Add nodes of two processors until there are so many."""
        while len(self.nodes) < count:
            node = self.cluster.add_node(num_cpus=2)
            self.nodes[node.node_id] = node
        # Of a node that was just killed the cluster may not know yet.
        self.cluster.wait_for_nodes(timeout=120)

    def kill(self, name: str) -> None:
        self.cluster.remove_node(self.nodes.pop(name), allow_graceful=False)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield Nodes(cluster)
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def executor(nodes: Nodes) -> Executor:
    nodes.at_least(2)
    return executor_of("ray")


def begun(folder: Path, among: set[str]) -> dict[str, list[str]]:
    """The nodes on which items have begun, with their processes."""
    found: dict[str, list[str]] = {}
    for path in folder.glob("lane*-*"):
        _, node, process = path.name.split(".")
        if node in among:
            found.setdefault(node, []).append(process)
    return found


def alive(process: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize("killed", ["worker", pytest.param("node", marks=pytest.mark.slow)])
def test_what_dies_loses_nothing_that_is_known_and_repeats_nothing(
    killed: str, nodes: Nodes, executor: Executor, tmp_path: Path
) -> None:
    lanes = [[(f"lane{lane}", number) for number in range(3)] for lane in range(4)]
    dead: list[str] = []

    def kill() -> None:
        while sum(map(len, (there := begun(tmp_path, {*nodes.nodes})).values())) < len(lanes):
            time.sleep(0.02)
        assert len(there) == 2
        node, processes = min(there.items())
        if killed == "node":
            nodes.kill(node)
        else:
            processes = processes[:1]
            os.kill(int(processes[0]), signal.SIGKILL)
        dead.extend(processes)
        while any(map(alive, processes)):
            time.sleep(0.02)
        (tmp_path / "gate").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    with executor.crew(partial(gated, tmp_path, "gate", "kept"), len(lanes)) as crew:
        done = list(crew.done(lanes))
    killer.join()
    assert sorted(item for item, _ in done) == sorted(item for lane in lanes for item in lane)
    for lane in lanes:
        assert [item for item, _ in done if item in lane] == lane
    assert all(result[1] == item[1] ** 2 for item, result in done)
    # What the dead had begun was begun again elsewhere; what they kept was loaded once in each worker.
    beginnings = [path.name.split(".") for path in tmp_path.glob("lane*-*")]
    again = [name for name, _, process in beginnings if process in dead]
    assert len(again) == len(dead)
    assert all(sum(name == other for other, _, _ in beginnings) == 2 for name in again)
    assert len(beginnings) == 12 + len(again)
    kept = {path.name.removeprefix("kept.") for path in tmp_path.glob("kept.*")}
    assert {".".join(place) for _, *place in beginnings} <= kept


def test_rows_of_a_run_in_which_a_node_is_killed_are_those_of_one_process(
    nodes: Nodes, executor: Executor, tmp_path: Path
) -> None:
    config = Config(flips=50, seeds=SEEDS, gate=str(tmp_path / "gate"))
    told: list[str] = []

    def tell(line: str) -> None:
        told.append(line.split()[1])
        if len(told) == 2:
            draft = Draft(STUDY.result_folder(config, tmp_path / "cluster"))
            assert all(map(draft.has, ("seed-0", "seed-1")))
            nodes.kill(min(nodes.nodes))
            Path(config.gate).touch()

    biased_coin.RUNS.clear()
    cluster = execute(STUDY, config, tmp_path / "cluster", executor=executor, progress=tell)
    assert biased_coin.RUNS == []
    assert sorted(told) == [f"seed-{seed}:" for seed in SEEDS]
    alone = execute(STUDY, config, tmp_path / "alone")
    assert (cluster.folder / "rows.jsonl").read_bytes() == (alone.folder / "rows.jsonl").read_bytes()
    sessions = [record.provenance["sessions"] for record in (cluster, alone)]
    assert {one["command"] for one in sessions[0]} == {one["command"] for one in sessions[1]}
