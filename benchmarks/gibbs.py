"""Speed and accuracy of Gibbs sampling of Ising and Potts models, compared with other packages.

All contenders run on one thread for a few seconds. The speed is the number of site updates per CPU second. The accuracy
is the deviation of a mean from its exact value, in standard errors over independent chains. On the ring (J = 1, no
field, beta = 0.5) this is the mean of x_i x_(i+1). On the Potts chain with random window energies it is the mean energy
of a window. A deviation of more than six standard errors is marked as wrong. Metropolis updates in fixed order, for
instance, are not ergodic on this ring. `--peers` is a Python interpreter with some of dwave-samplers, openjij, thrml,
peapods and mcising. The default is the current interpreter.

    python benchmarks/gibbs.py [--peers /path/to/python]
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from record import Record
from trialogue.data import Ising, window_tables
from trialogue.randomness import generator
from trialogue.samplers import Gibbs, run_chain
from trialogue.samplers.chains.chain import KERNELS
from trialogue.samplers.chains.simulation.heat_bath import HeatBath
from trialogue.samplers.chains.simulation.multispin import Multispin
from trialogue.samplers.chains.simulation.sweeps import Simulation

SITES, BETA = 1000, 0.5
VOCAB, WIDTH = 10, 3
WRONG = 6
PEERS = Path(__file__).with_name("gibbs_peers.py")


class Row(NamedTuple):
    """Number of site updates, CPU seconds, and the mean of each independent chain for one contender."""

    name: str
    updates: int
    seconds: float
    means: Tensor
    target: str = ""


def ring() -> Ising:
    coupling = torch.zeros(SITES, SITES, dtype=torch.float64)
    site = torch.arange(SITES)
    coupling[site, (site + 1) % SITES] = BETA
    return Ising(coupling + coupling.T, torch.zeros(SITES))


def ring_means(tokens: Tensor) -> Tensor:
    spins = 2.0 * tokens - 1
    return (spins * spins.roll(1, 1)).mean(1)


def exact_ring() -> float:
    t = math.tanh(BETA)
    return (t + t ** (SITES - 1)) / (1 + t**SITES)


def window_means(tokens: Tensor, energy: Tensor) -> Tensor:
    return energy[tokens[:, :-2], tokens[:, 1:-1], tokens[:, 2:]].mean(1)


def exact_window(energy: Tensor) -> float:
    """Return the exact mean energy of a window, as the derivative of log Z computed with transfer matrices."""
    scale = torch.ones((), dtype=torch.float64, requires_grad=True)
    message = torch.zeros(VOCAB, VOCAB, dtype=torch.float64)
    for _ in range(SITES - WIDTH + 1):
        message = (message[:, :, None] - scale * energy).logsumexp(0)
    (slope,) = torch.autograd.grad(message.logsumexp((0, 1)), scale)
    return -float(slope) / (SITES - WIDTH + 1)


def simulated(
    name: str,
    simulation: Simulation,
    chains: int,
    sweeps: int,
    means: Callable[[Tensor], Tensor],
    target: str,
) -> Row:
    simulation.advance(sweeps)
    began = time.process_time()
    simulation.advance(sweeps)
    seconds = time.process_time() - began
    return Row(name, chains * SITES * sweeps, seconds, means(simulation.tokens), target)


def stepped(name: str, model: Ising, chains: int, sweeps: int) -> Row:
    """Measure `run_chain`, including the time of its first sweeps."""
    start = torch.randint(2, (chains, SITES), generator=generator(1, "start"))
    began = time.process_time()
    run = run_chain(Gibbs("sweep"), model, start=start, steps=sweeps)
    return Row(name, chains * SITES * sweeps, time.process_time() - began, ring_means(run.tokens))


def ours_on_ring() -> list[Row]:
    model = ring()
    rows = [
        simulated("heat bath", HeatBath(model, 2048, 1), 2048, 400, ring_means, ">= 400"),
        simulated("multispin", Multispin(model, 8192, 1), 8192, 1000, ring_means, "to 10,000"),
        stepped("run_chain(Gibbs('sweep'))", model, 64, 1000),
    ]
    kernel = KERNELS.pop((Gibbs, Ising))
    rows.append(stepped("Gibbs('sweep').step, not compiled", model, 512, 10))
    KERNELS[Gibbs, Ising] = kernel
    return rows


def peers_on_ring(python: str) -> tuple[list[Row], list[str]]:
    """Return the rows of the packages that `python` has, and a message for each missing package."""
    command = [python, str(PEERS), str(SITES), str(BETA)]
    rows, missing = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            answer = json.loads(line)
            if "missing" in answer:
                missing.append(f"{answer['name']}: {answer['missing']}")
            else:
                means = torch.tensor(answer["means"], dtype=torch.float64)
                rows.append(Row(answer["name"], answer["updates"], answer["seconds"], means))
    return rows, missing


def print_rows(console: Console, title: str, rows: list[Row], exact: float, record: Record) -> None:
    table = Table(title=f"{title}; exact {exact:.4f}")
    table.add_column()
    for column in ("M updates/s", "target", "measured", "errors", ""):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        mean, error = float(row.means.mean()), float(row.means.std()) / math.sqrt(len(row.means))
        distance = (mean - exact) / error
        speed = f"{row.updates / row.seconds / 1e6:,.1f}"
        record.add(row.name, row.updates / row.seconds / 1e6, what="M updates/s", of=title)
        record.add(row.name, mean, what="mean", of=title)
        verdict = "right" if abs(distance) < WRONG else "wrong"
        table.add_row(row.name, speed, row.target, f"{mean:.4f}", f"{distance:+.1f}", verdict)
    console.print(table)


def main() -> None:
    """Run the benchmark and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--peers", metavar="PYTHON", default=sys.executable, help="Python interpreter with the other packages"
    )
    parser.add_argument("--record", action="store_true", help="write the rows that README quotes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    console, record = Console(), Record("gibbs")
    rows, missing = peers_on_ring(arguments.peers)
    print_rows(
        console, f"Ising ring, N = {SITES}, beta = {BETA}", ours_on_ring() + rows, exact_ring(), record
    )
    for line in missing:
        console.print(line)
    energy = torch.randn([VOCAB] * WIDTH, generator=generator(1, "energy"), dtype=torch.float64) / 2
    simulation = HeatBath(window_tables(energy, SITES), 1024, 1)
    row = simulated("heat bath", simulation, 1024, 300, lambda tokens: window_means(tokens, energy), ">= 200")
    print_rows(
        console,
        f"Potts chain, N = {SITES}, V = {VOCAB}, windows of {WIDTH}",
        [row],
        exact_window(energy),
        record,
    )
    if arguments.record:
        record.write()


if __name__ == "__main__":
    main()
