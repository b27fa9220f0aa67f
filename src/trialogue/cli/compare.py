"""The command `trialogue compare`."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from trialogue.cli.parsing.commands import Commands
from trialogue.errors import InputError
from trialogue.registry import Registry

COMPARISONS: Registry[Callable[[Sequence[str], Path | None, bool], None]] = Registry(
    "trialogue.comparisons", "comparison", {}
)
"""Functions that compare results other than inspections. Arguments: names of results, their folder, and whether to
print what is equal in both."""


def compare(arguments: argparse.Namespace) -> None:
    """Compare inspections of models, or two results of a study."""
    if any(_is_inspection(Path(place)) for place in arguments.result):
        if arguments.results is not None:
            raise InputError(
                "results", str(arguments.results), "--results does not apply to inspections: leave it out"
            )
        if arguments.all:
            raise InputError("all", True, "--all applies to results of studies only: leave it out")
        _inspections(arguments.result, arguments.out, arguments.control)
        return
    if "results" not in COMPARISONS:
        hint = "not a file of `trialogue inspect`; to compare results of studies: pip install trialogue-lab"
        raise InputError("result", arguments.result[0], hint)
    if arguments.out is not None:
        raise InputError("out", str(arguments.out), "--out applies to inspections only: leave it out")
    if arguments.control:
        raise InputError("control", True, "--control applies to inspections only: leave it out")
    COMPARISONS["results"](arguments.result, arguments.results, arguments.all)


def _is_inspection(place: Path) -> bool:
    return place.suffix == ".json" or (place / "inspection.json").exists()


def _inspections(places: Sequence[str], page: Path | None, control: bool) -> None:
    from trialogue.extras import from_extra
    from trialogue.inspection.comparing import read_inspections
    from trialogue.inspection.conclusions import CHANGE_RULE
    from trialogue.inspection.page import compare_changes, compare_results, print_tables, render_comparison
    from trialogue.storage import atomic_write, require_folder

    if page is not None:
        require_folder(page)
        from_extra("matplotlib", "plot")
    records = read_inspections(places)
    print_tables(compare_results(records, control=control))
    for name, sentences in compare_changes(records).items():
        for sentence in filter(None, sentences):
            print(f"{name}: {sentence}")
    print(CHANGE_RULE)
    for head, record in records.items():
        for name, reason in record["refused"].items():
            print(f"{name} skipped for {head}: {reason}")
    if page is not None:
        print(f"page: {atomic_write(page, render_comparison(records, control=control))}")


def add(commands: Commands) -> None:
    """Add the command `trialogue compare` to a parser.

    Args:
        commands: Commands of the parser.
    """
    parser = commands.add("compare", compare, group="Inspect")
    parser.add_argument(
        "result",
        metavar="RESULT",
        nargs="+",
        help="Files or folders written by `trialogue inspect`, or two results of a study "
        "(folder, hash, STUDY@HASH, or STUDY for the committed one).",
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="Write an HTML page of the inspections to FILE."
    )
    parser.add_argument(
        "--control",
        action="store_true",
        help="Also show the values for random weights.",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="Also print rows that are equal in both results of a study.",
    )
    parser.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        help="Read results of studies from DIR (default: the published results, then ./results and ./runs).",
    )
