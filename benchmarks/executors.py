"""What an executor adds to a small study: wall seconds of a run from nothing, and of one item of nothing.

Every run measures the parts of the same preset anew. The first run with two processes pays for starting them, the first
on Ray for starting the cluster; items are handed to one worker, one after another.

    python benchmarks/executors.py
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import ray
import torch

from record import Record
from trialogue.executors import Executor, executor_of
from trialogue_lab import studies
from trialogue_lab.ledger.runs.execution import execute

STUDY, PRESET = "mixing-and-learning", "smoke"
ITEMS = 500


def ran(executor: Executor) -> float:
    """Wall seconds of the whole run."""
    study = studies.find(STUDY)
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        execute(study, study.preset(PRESET), Path(folder), executor=executor)
        return time.perf_counter() - began


def nothing() -> Callable[[int], int]:
    return abs


def item(executor: Executor) -> float:
    """Milliseconds of an item that takes no time, the worker being there already."""
    with executor.crew(nothing, 2) as crew:
        list(crew.done([[0], [0]]))
        began = time.perf_counter()
        list(crew.done([list(range(ITEMS))]))
        return 1e3 * (time.perf_counter() - began) / ITEMS


def main() -> None:
    torch.set_num_threads(1)
    record, study = Record("executors"), studies.find(STUDY)
    record.add("study", len(study.parts(study.preset(PRESET))), what="parts")
    ran(executor_of("local"))  # imports and compilation
    for name, executor in (
        ("one process", executor_of("local")),
        ("local, first", executor_of("local", 2)),
        ("local", executor_of("local", 2)),
        ("ray, first", executor_of("ray", 2)),
    ):
        record.add(name, round(ran(executor), 2), what="seconds")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    record.add("ray, running cluster", round(ran(executor_of("ray", 2)), 2), what="seconds")
    for name in ("local", "ray"):
        record.add(name, round(item(executor_of(name, 2)), 3), what="ms an item")
    ray.shutdown()
    record.write()


if __name__ == "__main__":
    main()
