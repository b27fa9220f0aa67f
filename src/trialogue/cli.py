"""The command line: `trialogue list | run | ledger | compare | report`, one function per command.

Bad input is one line on standard error and exit code 2; Ctrl-C is one line and exit code 130.
"""

import argparse
import contextlib
import dataclasses
import difflib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trialogue import __version__, studies
from trialogue.errors import InputError

if TYPE_CHECKING:
    from trialogue.studies.study import Study

# Commands import what they need when they are called: `list` and `--help` must not wait for torch or pandas.


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"trialogue: error: {message} (see `{self.prog} --help`)\n")


def list_studies(arguments: argparse.Namespace) -> None:
    """List the studies and their questions."""
    del arguments
    for name, question in studies.questions().items():
        print(f"{name}\n    {question}")


def run(arguments: argparse.Namespace) -> None:
    """Run a study, or resume it; print its tables and verdicts and write its report."""
    if arguments.study is None:
        if not arguments.help:
            raise InputError("study", None, "name one: see `trialogue list`")
        arguments.parser.print_help()
        return
    study = studies.find(arguments.study)
    if arguments.help:
        arguments.parser.print_help()
        arguments.overrides = ["--help"]
    config = override(study, arguments.preset, arguments.overrides)
    for name in ("threads", "workers"):
        if getattr(arguments, name) < 1:
            raise InputError(name, getattr(arguments, name), "use 1 or more")

    import torch

    from trialogue.ledger import judged, terminal
    from trialogue.ledger.report import render_report
    from trialogue.storage import atomic_write
    from trialogue.studies.execution import execute

    torch.set_num_threads(arguments.threads)
    result = execute(
        study,
        config,
        arguments.results,
        force=arguments.force,
        workers=arguments.workers,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    out = terminal.console()
    for table in study.tables:
        terminal.print_table(out, table, result)
    entry = judged(study, result)
    terminal.print_ledger(out, [entry])
    report = atomic_write(result.folder / "report.html", render_report([entry]))
    print(f"rows: {result.folder / 'rows.jsonl'}\nreport: {report}")


def override(study: "Study[Any]", preset: str, tokens: Sequence[str]) -> Any:
    """The config of `preset` with the fields that the command line's `tokens` set, typed by the config's
    class.

    Raises `InputError` for an unknown field, a value of the wrong type, or one that the config refuses.
    """
    import tyro

    config = study.preset(preset)
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config) if field.init}
    # The class without its own checks: they run below, on the whole config, where their error keeps its words.
    unchecked: Any = type(type(config).__name__, (type(config),), {"__post_init__": lambda _: None})
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            parsed, unknown = tyro.cli(
                unchecked,
                prog=f"trialogue run {study.name}",
                description=f"Fields of the config, with the values of the preset {preset}.",
                args=list(tokens),
                default=unchecked(**fields),
                return_unknown_args=True,
            )
    except SystemExit as error:
        if not error.code:
            raise
        raise InputError("fields", " ".join(tokens), _first_words(complaint.getvalue())) from None
    if unknown:
        close = difflib.get_close_matches(unknown[0].lstrip("-").replace("-", "_"), fields, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the fields are {', '.join(fields)}"
        raise InputError("field", unknown[0], f"{study.name} has no such field: {hint}")
    return dataclasses.replace(config, **{name: getattr(parsed, name) for name in fields})


def _first_words(box: str) -> str:
    """The first paragraph inside the box that tyro draws around an error, on one line."""
    lines = [line.strip("│ ") for line in box.splitlines() if line.startswith("│")]
    paragraph: list[str] = []
    for line in lines:
        if set(line) == {"─"}:
            break
        paragraph.append(line)
    return " ".join(paragraph) or " ".join(box.split())


def show_ledger(arguments: argparse.Namespace) -> None:
    """Print the verdict on every claim of every study."""
    from trialogue.ledger import ledger, ledger_records, terminal

    entries = ledger([studies.find(name) for name in studies.modules()], arguments.results)
    if arguments.json:
        print(json.dumps(ledger_records(entries), indent=1, ensure_ascii=False, allow_nan=False))
    else:
        terminal.print_ledger(terminal.console(), entries)


def compare(arguments: argparse.Namespace) -> None:
    """Print what differs between two results of one study."""
    from trialogue.ledger import comparison, find_result, terminal

    first, second = (find_result(name, arguments.results) for name in (arguments.first, arguments.second))
    compared = comparison.compare(studies.find(first.study), first, second)
    terminal.print_comparison(terminal.console(), compared, first, second)


def report(arguments: argparse.Namespace) -> None:
    """Write the report of the results that count, or of those that are named, as one HTML page."""
    from trialogue.ledger import find_result, judged, ledger
    from trialogue.ledger.report import render_report
    from trialogue.storage import atomic_write

    if arguments.result:
        found = [find_result(name, arguments.results) for name in arguments.result]
        entries = [judged(studies.find(result.study), result) for result in found]
    else:
        entries = ledger([studies.find(name) for name in studies.modules()], arguments.results)
    print(atomic_write(arguments.out or arguments.results / "report.html", render_report(entries)))


def parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    whole = _Parser(prog="trialogue", description="When do conditionals add up to a good joint distribution?")
    whole.add_argument("--version", action="version", version=f"trialogue {__version__}")
    commands = whole.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, function: Any, **settings: Any) -> argparse.ArgumentParser:
        said = function.__doc__
        added = commands.add_parser(name, help=said, description=said, allow_abbrev=False, **settings)
        added.set_defaults(function=function, parser=added)
        return added

    command("list", list_studies)
    running = command(
        "run",
        run,
        add_help=False,
        usage="trialogue run STUDY [--preset PRESET] [--workers N] [--results DIR] [--force] [--FIELD VALUE ...]",
        epilog="`trialogue run STUDY --help` lists the fields of the study's config.",
    )
    running.add_argument("study", metavar="STUDY", nargs="?", help="name of the study")
    running.add_argument("--preset", default="default", help="smoke, default (the default) or paper")
    running.add_argument("--force", action="store_true", help="measure anew what is finished already")
    running.add_argument(
        "--threads",
        metavar="N",
        type=int,
        default=1,
        help="threads of torch (1: small models gain little from more, and lose tenfold on a busy machine)",
    )
    running.add_argument(
        "--workers", metavar="N", type=int, default=1, help="processes that measure independent parts (1)"
    )
    running.add_argument("-h", "--help", action="store_true", help="show this help, and the study's fields")
    showing = command("ledger", show_ledger)
    showing.add_argument("--json", action="store_true", help="print one JSON record per claim")
    comparing = command("compare", compare)
    for place in ("first", "second"):
        comparing.add_argument(place, metavar="RESULT", help="a folder, a hash, STUDY@HASH or a study")
    reporting = command("report", report)
    reporting.add_argument(
        "result", metavar="RESULT", nargs="*", help="a folder, a hash, STUDY@HASH or a study"
    )
    reporting.add_argument("--out", metavar="FILE", type=Path, help="the page (default: DIR/report.html)")
    for subparser in (running, showing, comparing, reporting):
        subparser.add_argument(
            "--results",
            metavar="DIR",
            type=Path,
            default=Path("results"),
            help="folder of results (./results)",
        )
    return whole


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 0, 2 for bad input, 130 for Ctrl-C."""
    try:
        whole = parser()
        arguments, rest = whole.parse_known_args(tokens)
        if rest and arguments.function is not run:
            arguments.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        arguments.overrides = rest
        arguments.function(arguments)
        sys.stdout.flush()
    except InputError as error:
        print(f"trialogue: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(f"\ntrialogue: {error or 'interrupted'}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has gone; what is still in the buffer must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
