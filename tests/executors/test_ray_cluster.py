"""Runs on a Ray cluster survive the loss of a worker or a node and have the same rows as runs in one process."""

import os
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import biased_coin
import psutil
import pytest
from biased_coin import STUDY, Config

from executors.counted import gated
from trialogue.executors import make_executor
from trialogue_lab.ledger.runs.drafts import Draft
from trialogue_lab.ledger.runs.execution import execute

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'trialogue[ray]'")

pytestmark = pytest.mark.filterwarnings("default")  # Ray itself issues warnings.
SEEDS = (0, 1, 2, 3, 4, 5)


class Nodes:
    """A cluster with a head node without processors and with nodes that can be killed."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.nodes: dict[str, Any] = {}

    def at_least(self, count: int) -> None:
        """Add nodes with one processor each until there are at least `count` nodes."""
        while len(self.nodes) < count:
            node = self.cluster.add_node(num_cpus=1)
            self.nodes[node.node_id] = node
        # The cluster may not yet have detected that a node was killed.
        self.cluster.wait_for_nodes(timeout=120)

    def kill(self, name: str) -> None:
        self.cluster.remove_node(self.nodes.pop(name), allow_graceful=False)


@pytest.fixture(scope="module")
def nodes():
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield Nodes(cluster)
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def executor(nodes):
    nodes.at_least(2)
    return make_executor("ray")


def started_items(folder: Path, among: set[str]) -> dict[str, list[str]]:
    """Return the process of each started item by node, for the nodes in `among`."""
    found: dict[str, list[str]] = {}
    for path in folder.glob("lane*-*"):
        _, node, process = path.name.split(".")
        if node in among:
            found.setdefault(node, []).append(process)
    return found


def is_alive(process: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(int(process)).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize("killed", ["worker", pytest.param("node", marks=pytest.mark.slow)])
def test_only_unfinished_items_of_a_dead_worker_or_node_are_repeated(killed, nodes, executor, tmp_path):
    lanes = [[(f"lane{lane}", number) for number in range(3)] for lane in range(2)]
    dead: list[str] = []

    def kill() -> None:
        while sum(map(len, (there := started_items(tmp_path, {*nodes.nodes})).values())) < len(lanes):
            time.sleep(0.02)
        assert len(there) == 2
        node, processes = min(there.items())
        if killed == "node":
            nodes.kill(node)
        else:
            os.kill(int(processes[0]), signal.SIGKILL)
        dead.extend(processes)
        while any(map(is_alive, processes)):
            time.sleep(0.02)
        (tmp_path / "gate").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    with executor.start_workers(partial(gated, tmp_path, "gate", "kept"), len(lanes)) as workers:
        done = list(workers.done(lanes))
    killer.join()
    assert sorted(item for item, _ in done) == sorted(item for lane in lanes for item in lane)
    for lane in lanes:
        assert [item for item, _ in done if item in lane] == lane
    assert all(result[1] == item[1] ** 2 for item, result in done)
    # Items of dead processes were started a second time. Each worker created its function once.
    starts = [path.name.split(".") for path in tmp_path.glob("lane*-*")]
    restarted = [name for name, _, process in starts if process in dead]
    assert len(restarted) == len(dead)
    assert all(sum(name == other for other, _, _ in starts) == 2 for name in restarted)
    assert len(starts) == 6 + len(restarted)
    kept = {path.name.removeprefix("kept.") for path in tmp_path.glob("kept.*")}
    assert {".".join(place) for _, *place in starts} <= kept


@pytest.mark.slow
def test_a_run_in_which_a_node_is_killed_has_the_rows_of_one_process(nodes, executor, tmp_path):
    config = Config(flips=50, seeds=SEEDS, gate=str(tmp_path / "gate"))
    finished: list[str] = []

    def record_line(line: str) -> None:
        finished.append(line.split()[1])
        if len(finished) == 2:
            draft = Draft(STUDY.result_folder(config, tmp_path / "cluster"))
            assert all(map(draft.contains, ("seed-0", "seed-1")))
            nodes.kill(min(nodes.nodes))
            Path(config.gate).touch()

    biased_coin.RUNS.clear()
    cluster = execute(STUDY, config, tmp_path / "cluster", executor=executor, progress=record_line)
    assert biased_coin.RUNS == []
    assert sorted(finished) == [f"seed-{seed}:" for seed in SEEDS]
    single_process = execute(STUDY, config, tmp_path / "single_process")
    assert (cluster.folder / "rows.jsonl").read_bytes() == (single_process.folder / "rows.jsonl").read_bytes()
    sessions = [record.provenance["sessions"] for record in (cluster, single_process)]
    assert {one["command"] for one in sessions[0]} == {one["command"] for one in sessions[1]}
