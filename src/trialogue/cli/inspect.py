"""The command `trialogue inspect`."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trialogue.cli.parsing.commands import Commands, add_model_options
from trialogue.validation import Count, Positive, check

_PAGE = "inspection.html"


def inspect(arguments: argparse.Namespace) -> None:
    """Measure the structure that a checkpoint, or a series of checkpoints, has learned.

    Each measure prints an estimate of its cost first, and is repeated for random weights as a control. Results are
    written to an HTML page and to a JSON file for `trialogue compare`. Repeat the command to resume an interrupted run.
    """
    import torch

    from trialogue.executors.settings import Execution
    from trialogue.extras import from_extra
    from trialogue.inspection.measures.measure import Effort, Material
    from trialogue.inspection.page import render_inspection
    from trialogue.inspection.running import RECORD, run_inspection
    from trialogue.storage import atomic_write

    from_extra("matplotlib", "plot")  # Check for the package before the computation.
    torch.set_num_threads(check("threads", arguments.threads, Count))
    place = Path(arguments.model)
    # A symbolic link keeps its name, because its target may change. `.` and `..` must be resolved.
    name = place.resolve().name if place.name in ("", "..") else place.name
    folder: Path = arguments.out or Path(f"inspection-{name}")
    try:
        record = run_inspection(
            arguments.model,
            folder,
            measures=arguments.measures,
            material=Material(arguments.text, arguments.clones),
            effort=Effort(factor=check("effort", arguments.effort, Positive), seed=arguments.seed),
            control=arguments.control,
            device=arguments.device,
            dtype=arguments.dtype,
            executor=Execution(arguments.executor, arguments.workers).opened(arguments.threads),
            threads=arguments.threads,
            remote_code=arguments.trust_remote_code,
            report=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except KeyboardInterrupt as error:
        message = f"interrupted: finished results are in {folder}; run the same command to continue"
        raise KeyboardInterrupt(message) from error
    page = atomic_write(folder / _PAGE, render_inspection(record))
    _print(record, arguments.trust_remote_code)
    print(f"page: {page}")
    print(f"numbers: {folder / RECORD}")


def _print(record: Mapping[str, Any], remote_code: bool) -> None:
    from trialogue.display.terminal import console, grid
    from trialogue.inspection.conclusions import CHANGE_RULE, CONTROL
    from trialogue.inspection.page import (
        describe_intervals,
        describe_measure,
        make_step_table,
        model_name,
        print_tables,
        read_series,
    )

    conclusions: dict[str, list[str]] = {}
    is_training = False
    for name, measure in record["measures"].items():
        checkpoints = {
            model_name(record) if one["step"] is None else f"step {one['step']}": one["quantities"]
            for one in measure["checkpoints"]
        }
        series = read_series(checkpoints)
        control = read_series({CONTROL: measure["control"]} if measure["control"] else {})
        title = f"{name}: {measure['question']}"
        if len(series) == 1:
            print_tables({title: [*series, *control]})
            console().print(f"{measure['reading']}\n", markup=False)
        else:
            is_training = True
            headings, rows = make_step_table(name, [*series, *control])
            console().print(grid(title, ("", *headings), [(label, *cells) for label, cells in rows]), "")
        conclusions[name] = describe_measure(name, series, control)
    has_control = any(measure["control"] for measure in record["measures"].values())
    console().print(f"{describe_intervals(has_control=has_control)}\n", markup=False)
    for name, sentences in conclusions.items():
        for sentence in sentences:
            print(f"{name}: {sentence}")
    if is_training:
        print(CHANGE_RULE)
    for name, reason in record["refused"].items():
        print(f"{name}: skipped: {reason}")
    if "orders" in record["measures"]:
        _print_commands(record["measures"]["orders"]["checkpoints"][-1], remote_code)


def _print_commands(checkpoint: Mapping[str, Any], remote_code: bool) -> None:
    """Print a command for each number of tokens per pass that samples in the recommended order."""
    from trialogue.inspection.conclusions import recommend_orders
    from trialogue.inspection.measures.orders import COMMAND_LENGTH, sampling_command
    from trialogue.inspection.page import read_series

    [series] = read_series({"": checkpoint["quantities"]})
    print(f"Sample {COMMAND_LENGTH} tokens in these orders:")
    for positions, order in recommend_orders(series).items():
        command = sampling_command(checkpoint["place"], order, positions)
        print(f"  {command}{' --trust-remote-code' if remote_code else ''}")


def add(commands: Commands) -> None:
    """Add the command `trialogue inspect` to a parser.

    Args:
        commands: Commands of the parser.
    """
    parser = commands.add("inspect", inspect, group="Inspect")
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="Masked or causal model: a Hugging Face id, folder, short name, GGUF file, or folder of checkpoint-N.",
    )
    parser.add_argument(
        "--measures",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="Run only these measures: copying, brackets, patterns, context, consistency, orders, interactions, topics "
        "or decoding (default: all that apply).",
    )
    for name, metavar, text in (
        ("text", "FILE", "UTF-8 file or folder of .txt files, for measures that need a text."),
        ("clones", "DIR", "Folder written by `trialogue clone`, for the measure of interaction order."),
        ("out", "DIR", "Write results to this folder (default: ./inspection-MODEL)."),
    ):
        parser.add_argument(f"--{name}", metavar=metavar, type=Path, help=text)
    parser.add_argument(
        "--effort",
        type=float,
        default=1.0,
        metavar="X",
        help="Multiply the amount of computation by X (default: 1, a few minutes).",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="Seed of the random numbers (default: 0)."
    )
    parser.add_argument(
        "--no-control",
        dest="control",
        action="store_false",
        help="Skip the control, the same architecture with random weights.",
    )
    add_model_options(parser, threads="Use this many PyTorch threads per process (default: 1).")
    parser.add_argument(
        "--trust-remote-code", action="store_true", help="Execute Python code from the model's repository."
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="Run this many worker processes, each with its own copy of the model (default: 1; on Ray one per GPU, "
        "or per CPU without GPUs).",
    )
    parser.add_argument(
        "--executor",
        metavar="WHERE",
        default="local",
        help="Start workers on this machine (local), on a new Ray cluster (ray), or on a running one "
        "(ray://HOST:PORT or ray:ADDRESS). All machines must see the same files.",
    )
