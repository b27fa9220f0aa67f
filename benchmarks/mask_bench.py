"""Compile time, time per mask and wrong verdicts of JSON Schema engines, measured as in MaskBench.

Each engine compiles a schema, and then computes the token mask before every token of valid and invalid instances. An
instance is accepted if the masks allow all of its tokens and then its end. The schemas with instances are in the folder
`maskbench/data` of https://github.com/guidance-ai/jsonschemabench. A random sample of them is used. Instances are
written by `json.dumps`, with its white space, in the tokens of SmolLM2.

Each engine runs in a process of its own on one thread, with CPU time limited for each schema. Our verifier returns
masks as tensors of bools, the other two as packed bits. Only our verifier caches the masks of equal prefixes. Times are
those of schemas that all engines compile, so that no engine gains by refusing difficult ones.

    trialogue models pull smollm2
    python benchmarks/mask_bench.py FOLDER [--xgrammar PYTHON] [--record]
"""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from peer_process import Peer
from record import Record
from trialogue.randomness import numpy_generator

COUNTS = ("schemas", "refused", "stopped", "instances", "accepted wrongly", "rejected wrongly", "masks")
PERCENTILES = (50, 99)


@dataclass
class Results:
    """Results of one engine: counts by name, and CPU seconds of compilation and of each mask by schema."""

    counts: Counter[str] = field(default_factory=Counter)
    compile: dict[int, float] = field(default_factory=dict)
    masks: dict[int, list[float]] = field(default_factory=dict)

    def add(self, number: int, case: dict[str, Any], answer: list[Any] | None) -> None:
        """Add the answer of an engine to a schema, or None if its process ended."""
        self.counts["schemas"] += 1
        if answer is None:
            self.counts["stopped"] += 1
            return
        refused, self.compile[number], self.masks[number], verdicts = answer
        self.counts["masks"] += len(self.masks[number])
        if refused:
            self.counts["refused"] += 1
            del self.compile[number]
        for test, accepted in zip(case["tests"], verdicts, strict=not refused):
            self.counts["instances"] += 1
            if accepted != test["valid"]:
                self.counts["accepted wrongly" if accepted else "rejected wrongly"] += 1


def read_cases(folder: Path, number: int, seed: int) -> list[dict[str, Any]]:
    """Return a random sample of the schemas in a folder that have instances."""
    paths = sorted(folder.glob("*.json"))
    order = numpy_generator(seed, "mask_bench").permutation(len(paths))
    cases = (json.loads(paths[place].read_text(encoding="utf-8")) for place in order)
    return [case for case, _ in zip((case for case in cases if case["tests"]), range(number), strict=False)]


def run_engine(
    name: str, python: str, cases: list[dict[str, Any]], seconds: float, minutes: float
) -> Results:
    """Send the schemas to the process of an engine, which is started again if it ends, for at most some minutes."""
    results, peer, deadline = Results(), None, time.monotonic() + 60 * minutes
    for number, case in enumerate(cases):
        if time.monotonic() > deadline:
            break
        peer = peer or Peer(python, "mask_engines.py", name, seconds)
        try:
            answer = peer.request(case)
        except SystemExit:
            peer.close()
            answer, peer = None, None
        results.add(number, case, answer)
    if peer is not None:
        peer.close()
    return results


def main() -> None:
    """Run the benchmark and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder maskbench/data of jsonschemabench")
    parser.add_argument(
        "--xgrammar", metavar="PYTHON", help="Python interpreter with xgrammar (default: skip)"
    )
    parser.add_argument("--schemas", type=int, default=400, help="number of schemas (default: 400)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=10, help="CPU seconds per schema and engine (default: 10)"
    )
    parser.add_argument(
        "--minutes", type=float, default=60, help="start no schema of an engine after this time (default: 60)"
    )
    parser.add_argument("--record", action="store_true", help="write the rows that the documentation quotes")
    arguments = parser.parse_args()
    cases = read_cases(arguments.folder, arguments.schemas, arguments.seed)
    if not cases:
        print(
            f"skipped: {arguments.folder} contains no schemas with instances; clone guidance-ai/jsonschemabench"
        )
        return
    pythons = {"trialogue": sys.executable, "llguidance": sys.executable, "xgrammar": arguments.xgrammar}
    found = {
        name: run_engine(name, python, cases, arguments.seconds, arguments.minutes)
        for name, python in pythons.items()
        if python is not None
    }
    common = set[int].intersection(*(set(results.compile) for results in found.values()))
    console, record = Console(width=140), Record("mask_bench")
    table = Table("", *found, title=f"{len(cases)} schemas, times of {len(common)} schemas that all compile")
    rows: dict[str, dict[str, float]] = {}
    for name, results in found.items():
        times = {
            "compile, ms": [1e3 * results.compile[number] for number in common],
            "mask, µs": [1e6 * seconds for number in common for seconds in results.masks[number]],
        }
        for what in COUNTS:
            rows.setdefault(what, {})[name] = results.counts[what]
        for what, seconds in times.items():
            for percentile in PERCENTILES:
                rows.setdefault(f"{what}, p{percentile}", {})[name] = float(
                    np.percentile(seconds, percentile)
                )
    for what, values in rows.items():
        table.add_row(what, *(f"{value:.4g}" for value in values.values()))
        for name, value in values.items():
            record.add(name, value, what=what)
    record.add("all", len(common), what="schemas that all engines compile")
    console.print(table)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
