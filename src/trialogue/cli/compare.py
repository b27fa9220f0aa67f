"""The command `trialogue compare`: two results of one study, or inspections of models, side by side."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from trialogue import studies
from trialogue.cli.commands import Commands
from trialogue.errors import InputError


def compare(arguments: argparse.Namespace) -> None:
    """Print what differs between two results of one study, or what inspections of models say side by side."""
    if any(_is_inspection(Path(place)) for place in arguments.result):
        if arguments.results is not None:
            mend = "inspections are not looked for there: name their files, and leave --results out"
            raise InputError("results", str(arguments.results), mend)
        _inspections(arguments.result, arguments.out, arguments.control)
    else:
        if arguments.out is not None:
            mend = "a page is of inspections; two results of a study are printed: leave --out out"
            raise InputError("out", str(arguments.out), mend)
        if arguments.control:
            raise InputError("control", True, "results of a study have none: leave --control out")
        _results(arguments.result, arguments.results)


def _is_inspection(place: Path) -> bool:
    return place.suffix == ".json" or (place / "inspection.json").exists()


def _results(names: Sequence[str], folder: Path | None) -> None:
    from trialogue.ledger import find_result
    from trialogue.ledger.pages import comparison, terminal

    if len(names) != 2:
        raise InputError("result", list(names), "name two results of one study")
    first, second = (find_result(name, folder) for name in names)
    if first.folder == second.folder:
        raise InputError("result", names[1], "is the same result as the first: name another")
    compared = comparison.compare(studies.find(first.study), first, second)
    terminal.print_comparison(terminal.console(), compared, first, second)


def _inspections(places: Sequence[str], page: Path | None, control: bool) -> None:
    from trialogue.analysis.inspection.comparing import read_inspections
    from trialogue.analysis.inspection.page import compared, render_comparison, table
    from trialogue.ledger.pages.terminal import console, grid
    from trialogue.storage import atomic_write, require_folder

    if page is not None:
        require_folder(page)
    records = read_inspections(places)
    out = console()
    for name, columns in compared(records, control=control).items():
        heads, lines = table(columns, every=False)
        out.print(grid(name, ("", *heads), [(label, *cells) for label, cells in lines]))
    for head, record in records.items():
        for name, reason in record["refused"].items():
            print(f"{name} not taken of {head}: {reason}")
    if page is not None:
        print(f"page: {atomic_write(page, render_comparison(records, control=control))}")


def add(commands: Commands) -> None:
    """Add `trialogue compare`."""
    parser = commands.add("compare", compare)
    parser.add_argument(
        "result",
        metavar="RESULT",
        nargs="+",
        help="two results of a study: a folder, a hash, STUDY@HASH or a study; or files of `trialogue inspect`",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="an HTML page of the inspections")
    parser.add_argument(
        "--control",
        action="store_true",
        help="of inspections also what their models have with random weights",
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        help="folder of results to read (default: the committed results, then ./results and ./runs)",
    )
