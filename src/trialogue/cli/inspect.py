"""The command `trialogue inspect`: what structure a checkpoint, or a training, has learned."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trialogue.cli.commands import Commands, add_model_options
from trialogue.validation import Count, Positive, check

_PAGE = "inspection.html"


def inspect(arguments: argparse.Namespace) -> None:
    """Measure what structure a checkpoint of Hugging Face has learned, or each in a folder that a training left.

    Each measure says what it costs before it runs, and is taken of random weights too. What is finished is filed: the
    same command goes on. Ends in a page and a JSON file that `trialogue compare` reads.
    """
    import torch

    from trialogue.executors.settings import Execution
    from trialogue.extras import from_extra
    from trialogue.inspection.measures.measure import Effort, Material
    from trialogue.inspection.page import render_inspection
    from trialogue.inspection.running import RECORD, inspected
    from trialogue.storage import atomic_write

    from_extra("matplotlib", "plot")  # needed after everything else
    torch.set_num_threads(check("threads", arguments.threads, Count))
    place = Path(arguments.model)
    # A link is named as it is, as what it leads to may change; `.` and `..` have no name of their own.
    name = place.resolve().name if place.name in ("", "..") else place.name
    folder: Path = arguments.out or Path(f"inspection-{name}")
    try:
        record = inspected(
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
        told = f"interrupted: what is finished is in {folder}, and the same command goes on"
        raise KeyboardInterrupt(told) from error
    page = atomic_write(folder / _PAGE, render_inspection(record))
    _print(record)
    print(f"page: {page}")
    print(f"numbers: {folder / RECORD}")


def _print(record: Mapping[str, Any]) -> None:
    from trialogue.inspection.page import CONTROL, columns_of, print_tables

    for name, measure in record["measures"].items():
        last = measure["checkpoints"][-1]
        head = record["model"] if last["step"] is None else f"step {last['step']}"
        columns = {head: last["quantities"]} | ({CONTROL: measure["control"]} if measure["control"] else {})
        print_tables({f"{name}: {measure['question']}": columns_of(columns)})
    for name, reason in record["refused"].items():
        print(f"{name}: not taken: {reason}")


def add(commands: Commands) -> None:
    """Add `trialogue inspect`."""
    parser = commands.add("inspect", inspect)
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a masked or causal model: a hub id, a folder, a short name, a GGUF file, a folder of checkpoint-N",
    )
    parser.add_argument(
        "--measures", metavar="NAME", nargs="+", action="extend", default=[], help="which of them (all)"
    )
    for name, metavar, said in (
        ("text", "FILE", "a UTF-8 file, or a folder of .txt files, for measures that need a text"),
        ("clones", "DIR", "what `trialogue clone` made, for interaction order"),
        ("out", "DIR", "folder of results (./inspection-MODEL)"),
    ):
        parser.add_argument(f"--{name}", metavar=metavar, type=Path, help=said)
    parser.add_argument(
        "--effort", type=float, default=1.0, metavar="X", help="times as much as takes some minutes (1)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is drawn (0)")
    parser.add_argument(
        "--no-control",
        dest="control",
        action="store_false",
        help="leave out the same architecture with random weights",
    )
    add_model_options(parser, threads="threads of torch, in each process that works (1)")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="processes that take measures at the same time, each with a model of its own (1; on Ray as many as there "
        "are GPUs, or else processors)",
    )
    parser.add_argument(
        "--executor",
        metavar="WHERE",
        default="local",
        help="local; ray: a Ray cluster for this run; ray://HOST:PORT or ray:ADDRESS: one that is running. Models, "
        "text and clones must be on each of its machines",
    )
