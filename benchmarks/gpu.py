"""Tests, benchmarks and `paper` presets on a GPU, within a time and a size.

Steps run one after the other, each in its own process. A finished step is not repeated, so that an interrupted command
can be given again, also on another machine. After each step, finished work is copied to `--out`, which never contains
more than `--mebibytes`. Unfinished runs of studies are kept in `--work` and continued.

    tests        the tests marked `gpu`
    generation, training, chains    see `gpu_speed.py`
    paper STUDY  `trialogue run STUDY --preset paper`, from the cheapest study on, while time is left

`--device cpu` takes the same steps on the CPU, and `--small` uses tiny models and smoke presets.

    python benchmarks/gpu.py --out FOLDER [--device cuda] [--minutes 10]
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from trialogue.storage import atomic_write
from trialogue_lab import studies

ROOT = Path(__file__).parents[1]
SHARES = {"tests": 0.2, "generation": 0.15, "training": 0.1, "chains": 0.1}
"""Largest share of the time that each step may take. The paper presets take what is left."""
SMALL_STUDY = "query-complexity"
GRACE = 20.0
"""Seconds for an interrupted process to store its progress."""
SUMMARY, SUMMARY_SIZE = "summary.json", 2**16


def order_studies() -> list[str]:
    """Return the studies with a paper preset, in increasing order of their estimated cost."""
    lines = (ROOT / "benchmarks" / "rows" / "paper.jsonl").read_text(encoding="utf-8").splitlines()
    hours: dict[str, float] = {}
    for what in ("core hours", "GPU hours"):
        hours |= {row["contender"]: row["value"] for row in map(json.loads, lines) if row["what"] == what}
    return sorted(hours.keys() & studies.modules().keys(), key=hours.__getitem__)


def make_command(step: str, given: argparse.Namespace, seconds: float) -> list[str]:
    """Return the command of a step."""
    small = ["--small"] if given.small else []
    if step == "tests":
        where = ["tests/test_gpu.py", "-k", "sweeps"] if small else ["tests", "lab/tests"]
        return [sys.executable, "-m", "pytest", "-n", "0", "-m", "gpu", *where]
    if step in SHARES:
        measured = 0.0 if small else seconds / 3  # the rest is for preparation and warm-up
        options = [
            "--device",
            given.device,
            "--seconds",
            str(measured),
            "--out",
            str(given.work / f"{step}.json"),
        ]
        return [sys.executable, str(ROOT / "benchmarks" / "gpu_speed.py"), step, *options, *small]
    study, preset = step.partition(" ")[2], "smoke" if small else "paper"
    results = ["--results", str(given.work / "runs")]
    return [sys.executable, "-m", "trialogue", "run", study, "--preset", preset, *results]


def run_process(command: list[str], log: Path, seconds: float, device: str) -> int | None:
    """Run a command for a limited time, and append its output to a file.

    Returns:
        Exit code, or None if the command was interrupted.
    """
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    environment = os.environ | {"TRIALOGUE_TEST_DEVICE": device} | hidden
    with log.open("ab") as output:
        options = {"cwd": ROOT, "env": environment, "stdout": output, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def total_size(files: list[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def list_files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def publish(work: Path, out: Path, limit: int) -> list[str]:
    """Copy finished steps, logs and runs of studies to `out`, small runs first.

    A file or run is copied whole or not at all.

    Returns:
        Names of the files and runs that are left out because of `limit`, the largest number of bytes.
    """
    steps = [(file, [file]) for suffix in (".json", ".log") for file in sorted(work.glob(f"*{suffix}"))]
    runs = [(run, list_files(run)) for run in work.glob("runs/*/*/")]
    kept, left_out = set[Path](), []
    for name, files in [*steps, *sorted(runs, key=lambda run: total_size(run[1]))]:
        if (size := total_size(files)) <= limit:
            limit -= size
            kept |= {file.relative_to(work) for file in files}
        else:
            left_out.append(str(name.relative_to(work)))
    for old in list_files(out):
        if old.relative_to(out) not in kept:
            old.unlink()
    for name in sorted(kept):
        content = (work / name).read_bytes()
        if not (out / name).is_file() or (out / name).read_bytes() != content:
            (out / name).unlink(missing_ok=True)
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            atomic_write(out / name, content)
    return left_out


def restore(work: Path, out: Path) -> None:
    """Copy to `work` what an earlier command wrote to `out`, perhaps on another machine."""
    for file in list_files(out):
        copy = work / file.relative_to(out)
        if file.name != SUMMARY and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)


def take_steps(given: argparse.Namespace) -> dict[str, str]:
    """Take all steps that have not finished, print a line for each, and return their states."""
    total, began = given.minutes * 60, time.monotonic()
    studies_in_order = [SMALL_STUDY] if given.small else order_studies()
    states: dict[str, str] = {}
    for step in [*SHARES, *(f"paper {name}" for name in studies_in_order)]:
        left = total - (time.monotonic() - began) - min(GRACE, total / 10)
        states[step] = take_step(step, given, min(left, SHARES.get(step, 1.0) * total))
        print(f"{step}: {states[step]}", flush=True)
        left_out = publish(given.work, given.out, int(given.mebibytes * 2**20) - SUMMARY_SIZE)
        summary = {"device": given.device, "small": given.small, "steps": states, "left out": left_out}
        atomic_write(given.out / SUMMARY, json.dumps(summary, indent=1) + "\n")
    size = total_size(list_files(given.out)) / 2**20
    print(f"{given.out}: {size:.1f} MiB, {len(left_out)} files and runs left out")
    return states


def take_step(step: str, given: argparse.Namespace, seconds: float) -> str:
    """Take a step for at most some seconds, and return its state."""
    file = given.work / f"{step.replace(' ', '-')}.json"
    if file.is_file():
        return "finished before"
    if seconds < 1:
        return "not started, because no time is left"
    began = time.monotonic()
    code = run_process(make_command(step, given, seconds), file.with_suffix(".log"), seconds, given.device)
    spent = f"after {time.monotonic() - began:.0f} s"
    if code is None:
        return f"interrupted {spent}"
    if code:
        return f"failed {spent} with exit code {code}: see {file.with_suffix('.log')}"
    if not file.is_file():
        atomic_write(file, json.dumps({"step": step, "device": given.device, "small": given.small}) + "\n")
    return f"finished {spent}"


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Return the options, with the folders made."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of what comes back")
    parser.add_argument("--work", type=Path, help="folder of unfinished work (default: build/gpu)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu (default: cuda)")
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all steps (default: 10)")
    parser.add_argument("--mebibytes", type=float, default=64.0, help="largest size of --out (default: 64)")
    parser.add_argument("--small", action="store_true", help="use tiny models and smoke presets")
    given = parser.parse_args(words)
    for name, least in (("minutes", 0.01), ("mebibytes", 1)):
        if not getattr(given, name) >= least:
            parser.error(f"--{name}: must be at least {least}, got {getattr(given, name):g}")
    if given.device != "cpu":
        import torch

        if not torch.cuda.is_available():
            parser.error(f"--device {given.device}: PyTorch finds no GPU. Use --device cpu to try the steps")
    kind = f"{given.device.replace(':', '-')}{'-small' if given.small else ''}"
    given.work = (given.work or ROOT / "build" / f"gpu-{kind}").resolve()
    given.out = given.out.resolve()
    for folder in (given.out, given.work):
        folder.mkdir(parents=True, exist_ok=True)
    return given


if __name__ == "__main__":
    arguments = parse()
    restore(arguments.work, arguments.out)
    sys.exit(any(state.startswith("failed") for state in take_steps(arguments).values()))
