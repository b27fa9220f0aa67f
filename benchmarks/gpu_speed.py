"""Speed of generation, training and chains on a device, for `gpu.py`.

    generation   tokens per second of `generate` with a random GPT-2 of the usual size
    training     updates per second of `train` with a network of the same size
    chains       site updates per second of Gibbs sweeps on a grid, and steps per second of parallel updates

Each number is measured for an equal part of `--seconds`, after one call to warm up. `--small` uses tiny models.

    python benchmarks/gpu_speed.py generation --device cuda --seconds 30 --out generation.json
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from trialogue import load_pretrained, run_chain, run_sweeps
from trialogue.data import Ising, ising_grid
from trialogue.models import Transformer, TransformerConfig, save_gpt2
from trialogue.samplers import IndependentParallel, generate
from trialogue.storage import atomic_write
from trialogue.training import TrainingConfig, train

LARGE = TransformerConfig(vocab_size=20_000, layers=12, heads=12, width=768, mlp_width=3072, max_length=128)
SMALL = TransformerConfig(vocab_size=50, layers=1, heads=2, width=16, mlp_width=16, max_length=16)
FIRST_LETTER = 0x4E00
"""Code point of the text of token 0. Each token is one letter of a large alphabet."""
Runs = dict[str, Callable[[], int]]
"""Functions that work once and return the number of units of their work, by the name of their speed."""


def make_generation(device: torch.device, small: bool) -> Runs:
    shape = SMALL if small else LARGE
    letters = "".join(chr(FIRST_LETTER + place) for place in range(shape.vocab_size))
    with tempfile.TemporaryDirectory() as folder:
        oracle = load_pretrained(save_gpt2(Transformer(shape), letters, folder), device=device)

    def run(rows: int) -> int:
        new = shape.max_length // 2
        made = generate(oracle, [[0, 1, 2]], num_samples=rows, max_new_tokens=new, batch_size=rows)
        return int((made.lengths - made.prompt_lengths).sum())

    return {f"tokens per second, batch {rows}": lambda rows=rows: run(rows) for rows in _rows(small)}


def make_training(device: torch.device, small: bool) -> Runs:
    """Return trainings. `train` chooses the device, which is a GPU if there is one."""
    del device
    shape = SMALL if small else LARGE

    def run(rows: int) -> int:
        batch = torch.zeros(rows, shape.max_length, dtype=torch.long), torch.full((rows,), shape.max_length)
        config = TrainingConfig(steps=2 if small else 20, batch_size=rows)
        return len(train(Transformer(shape), lambda _: batch, config, progress=False).losses)

    return {f"updates per second, batch {rows}": lambda rows=rows: run(rows) for rows in _rows(small)[:2]}


def make_chains(device: torch.device, small: bool) -> Runs:
    side, chains = (4, 8) if small else (64, 4096)
    grid, clique = ising_grid(side, side, 0.4), Ising.clique(8, 6, 0.3, 0.1).to(device)

    def sweeps() -> int:
        run_sweeps(grid, chains=chains, sweeps=10, method="chromatic", device=device)
        return 10 * chains * side**2

    def steps() -> int:
        start = torch.zeros(chains, clique.sites, dtype=torch.long, device=device)
        run_chain(IndependentParallel(), clique, start=start, steps=20)
        return 20 * chains

    return {"site updates per second, sweeps": sweeps, "steps per second, parallel": steps}


def _rows(small: bool) -> tuple[int, ...]:
    return (2,) if small else (1, 64, 512)


BENCHMARKS = {"generation": make_generation, "training": make_training, "chains": make_chains}


def measure(name: str, device: torch.device, seconds: float, small: bool) -> dict[str, float]:
    """Return the speeds of a benchmark.

    Args:
        name: Key of `BENCHMARKS`.
        device: Device of models and chains.
        seconds: Time for all speeds together, without preparation and warm-up.
        small: Whether to use tiny models.
    """
    runs = BENCHMARKS[name](device, small)
    return {speed: _time(run, device, seconds / len(runs)) for speed, run in runs.items()}


def _time(run: Callable[[], int], device: torch.device, seconds: float) -> float:
    """Return the units per second of `run`."""
    run()
    _wait(device)
    units, began = 0, time.perf_counter()
    while True:
        units += run()
        _wait(device)
        if (passed := time.perf_counter() - began) >= seconds:
            return units / passed


def _wait(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("benchmark", choices=BENCHMARKS)
    parser.add_argument("--device", default="cuda", help="default: cuda")
    parser.add_argument("--seconds", type=float, default=30.0, help="time for all speeds (default: 30)")
    parser.add_argument("--small", action="store_true", help="use tiny models")
    parser.add_argument("--out", type=Path, required=True, help="file for the speeds")
    given = parser.parse_args()
    speeds = measure(given.benchmark, torch.device(given.device), given.seconds, given.small)
    name = torch.cuda.get_device_name(given.device) if given.device.startswith("cuda") else given.device
    content = {"step": given.benchmark, "device": name, "small": given.small, "speeds": speeds}
    atomic_write(given.out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
