"""Speed of exact sampling from a Potts chain (V = 10, windows of 3 tokens, L = 1000), compared with alternatives.

All contenders run on one thread. The speed is the number of sequences per CPU second, without the time for messages,
tables and compilation. The accuracy is the deviation of the mean energy from its exact value, in standard errors over
the sequences. A deviation of more than six is marked as wrong. The two temperatures are a high one, at which tokens are
nearly independent, and a low one, at which sequences freeze. `--peers` is a Python interpreter with dynamax. The
default is the current interpreter.

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
TARGET = 150_000
WRONG = 6
PEERS = Path(__file__).with_name("potts_peers.py")


class Row(NamedTuple):
    """Number of sequences, CPU seconds, and the energy of each sequence over the temperature for one contender."""

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
    """Return the rows of the packages that `python` has, and a message for each missing package."""
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
    table = Table(title=f"T = {temperature}; target: {TARGET:,} a second; exact mean of H / T: {exact:.3f}")
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
    """Run the benchmark and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peers", metavar="PYTHON", default=sys.executable, help="Python interpreter with dynamax"
    )
    parser.add_argument("--record", action="store_true", help="write the rows that README quotes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    console, record = Console(), Record("potts")
    energies = torch.rand([VOCAB] * WINDOW, generator=generator(1, "energies"), dtype=torch.float64)
    chain, lacking = PottsChain(energies), set()
    for temperature in TEMPERATURES:
        rows = [ours(chain, temperature)]
        # NumPy and torch run in this interpreter, and the other interpreter only adds packages that are missing here.
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
