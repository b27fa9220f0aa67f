"""Exact samples of a Potts chain (V = 10, windows of 3, L = 1000), in sequences per core-second, beside other means.

All run on one thread and count CPU time; messages, tables and compilation are made before. Beside its speed is what
each got right: the mean energy against the exact one, in standard errors over its sequences; more than six is marked
wrong. At one temperature tokens are nearly independent, at the other sequences freeze. `--peers` names a Python with
dynamax; by default this one is asked.

    python benchmarks/potts.py [--peers /path/to/python]
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from record import Record
from trialogue.data import PottsChain
from trialogue.randomness import generator

VOCAB, WINDOW, LENGTH = 10, 3, 1000
TEMPERATURES = (1.0, 0.05)
SEQUENCES, REPEATS = 10_000, 10
ASKED = 150_000
WRONG = 6
PEERS = Path(__file__).with_name("potts_peers.py")


class Row(NamedTuple):
    """One contender: sequences, CPU seconds, and the energy over the temperature of each sequence."""

    name: str
    sequences: int
    seconds: float
    energies: Tensor


def ours(chain: PottsChain, temperature: float) -> Row:
    chain.sample(1, LENGTH, temperature)
    seconds = []
    for seed in range(REPEATS):
        began = time.process_time()
        tokens = chain.sample(SEQUENCES, LENGTH, temperature, seed=seed)
        seconds.append(time.process_time() - began)
    energies = chain.energy(tokens) / temperature
    return Row("PottsChain", SEQUENCES, min(seconds), energies)


def others(python: str, chain: PottsChain, temperature: float) -> tuple[list[Row], list[str]]:
    """Rows of what `python` has, and a line for each of what is missing."""
    rows, missing = [], []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log_weights.npy"
        np.save(file, (-chain.energies / temperature).numpy())
        command = [python, str(PEERS), str(file), str(LENGTH)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        if not line.startswith("{"):
            continue
        answer = json.loads(line)
        if "missing" in answer:
            missing.append(f"{answer['name']}: {answer['missing']}")
        else:
            energies = torch.tensor(answer["energies"], dtype=torch.float64)
            rows.append(Row(answer["name"], answer["sequences"], answer["seconds"], energies))
    return rows, missing


def print_rows(console: Console, temperature: float, rows: list[Row], exact: float, record: Record) -> None:
    table = Table(title=f"T = {temperature}; asked: {ASKED:,} a second; exact mean of H / T: {exact:.3f}")
    table.add_column(no_wrap=True)
    for column in ("sequences/s", "times slower", "measured", "errors", ""):
        table.add_column(column, justify="right", no_wrap=True)
    best = rows[0].sequences / rows[0].seconds
    for row in rows:
        mean, error = float(row.energies.mean()), float(row.energies.std()) / math.sqrt(len(row.energies))
        distance = (mean - exact) / error
        speed = row.sequences / row.seconds
        record.add(row.name, speed, what="sequences/s", temperature=temperature)
        verdict = "right" if abs(distance) < WRONG else "wrong"
        numbers = (f"{speed:,.0f}", f"{best / speed:,.1f}", f"{mean:.3f}", f"{distance:+.1f}")
        table.add_row(row.name, *numbers, verdict)
    console.print(table)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", metavar="PYTHON", default=sys.executable, help="a Python that has dynamax")
    parser.add_argument("--record", action="store_true", help="write the rows that README quotes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    console, record = Console(), Record("potts")
    energies = torch.rand([VOCAB] * WINDOW, generator=generator(1, "energies"), dtype=torch.float64)
    chain, lacking = PottsChain(energies), set()
    for temperature in TEMPERATURES:
        rows = [ours(chain, temperature)]
        # numpy and torch are the ones that we run on; the other Python has what this one lacks.
        pythons = dict.fromkeys((sys.executable, arguments.peers))
        for python in pythons:
            found, missing = others(python, chain, temperature)
            names = {row.name for row in rows}
            rows += [row for row in found if row.name not in names]
            lacking |= {line for line in missing if line.split(":")[0] not in names}
        have = {row.name for row in rows}
        print_rows(console, temperature, rows, chain.mean_energy(LENGTH, temperature) / temperature, record)
        lacking = {line for line in lacking if line.split(":")[0] not in have}
    for line in sorted(lacking):
        console.print(line)
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
