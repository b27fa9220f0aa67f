"""Overhead of executors, as the wall time of a small study and of an empty task.

Each run measures all tasks of the same preset. The first run with two processes includes the time to start them, and
the first run on Ray includes the time to start the cluster. Empty tasks are sent to one worker sequentially.

    python benchmarks/executors.py
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import ray
import torch

from record import Record
from trialogue.executors import Executor, make_executor
from trialogue_lab import studies
from trialogue_lab.ledger.runs.execution import execute

STUDY, PRESET = "mixing-and-learning", "smoke"
ITEMS = 500


def ran(executor: Executor) -> float:
    """Return the wall time of the whole run in seconds."""
    study = studies.find(STUDY)
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        execute(study, study.preset(PRESET), Path(folder), executor=executor)
        return time.perf_counter() - began


def nothing() -> Callable[[int], int]:
    return abs


def item(executor: Executor) -> float:
    """Return the time of an empty task in milliseconds, with a worker that is already running."""
    with executor.start_workers(nothing, 2) as workers:
        list(workers.done([[0], [0]]))
        began = time.perf_counter()
        list(workers.done([list(range(ITEMS))]))
        return 1e3 * (time.perf_counter() - began) / ITEMS


def main() -> None:
    torch.set_num_threads(1)
    record, study = Record("executors"), studies.find(STUDY)
    record.add("study", len(study.parts(study.preset(PRESET))), what="parts")
    ran(make_executor("local"))  # imports and compilation
    for name, executor in (
        ("one process", make_executor("local")),
        ("local, first", make_executor("local", 2)),
        ("local", make_executor("local", 2)),
        ("ray, first", make_executor("ray", 2)),
    ):
        record.add(name, round(ran(executor), 2), what="seconds")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    record.add("ray, running cluster", round(ran(make_executor("ray", 2)), 2), what="seconds")
    for name in ("local", "ray"):
        record.add(name, round(item(make_executor(name, 2)), 3), what="ms an item")
    ray.shutdown()
    record.write()


if __name__ == "__main__":
    main()
