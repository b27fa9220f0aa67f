"""Commands about studies: `trialogue list | run | pilot | ledger | report | fill`."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.cli.commands import Commands
from trialogue.cli.fields import override
from trialogue.errors import InputError
from trialogue_lab import studies

if TYPE_CHECKING:
    from trialogue_lab.ledger import Result, Study


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
    config = override(
        study.preset(arguments.preset),
        arguments.overrides,
        name=study.name,
        prog=f"trialogue run {study.name}",
        description=f"Fields of the config, with the values of the preset {arguments.preset}.",
    )
    result = _executed(study, config, arguments)

    from trialogue.display.terminal import console
    from trialogue.storage import atomic_write
    from trialogue_lab.ledger import judged
    from trialogue_lab.ledger.pages import terminal
    from trialogue_lab.ledger.pages.report import render_report
    from trialogue_lab.ledger.runs.results import RUNS

    entry = judged(study, result)
    out = console()
    for table in study.tables:
        terminal.print_table(out, table, entry.rows)
    terminal.print_ledger(out, [entry])
    report = atomic_write(result.folder / "report.html", render_report([entry]))
    place = "" if arguments.results == RUNS else f" --runs {arguments.results}"
    print(f"compare with the committed verdicts: trialogue ledger {study.name}{place}")
    print(f"rows: {result.folder / 'rows.jsonl'}\nreport: {report}")


def pilot(arguments: argparse.Namespace) -> None:
    """Run a study's pilot, on seeds of its own, and freeze what it shows in the study's folder."""
    study = studies.find(arguments.study)
    result = _executed(study, study.preset("pilot"), arguments)

    from trialogue_lab.ledger.runs.piloting import compute_pilot

    print(compute_pilot(study, result).write(study.pilot_file))


def _complain(line: str) -> None:
    print(f"trialogue: {line}", file=sys.stderr)


def _check_folder(results: Path | None) -> None:
    """Warn if the folder of results that the command names does not exist."""
    if results is not None and not results.is_dir():
        _complain(f"results={str(results)!r}: there is no such folder")


def _executed(study: "Study[Any]", config: object, arguments: argparse.Namespace) -> "Result":
    """The result of `config`, measured with the command's threads, workers and executor."""
    for name in ("threads", "workers"):
        given = getattr(arguments, name)
        if given is not None and given < 1:
            raise InputError(name, given, "use 1 or more")

    import torch

    from trialogue.executors import executor_of
    from trialogue_lab.ledger.runs.execution import execute

    torch.set_num_threads(arguments.threads)
    return execute(
        study,
        config,
        arguments.results,
        force=arguments.force,
        executor=executor_of(arguments.executor, arguments.workers, arguments.threads),
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )


def show_ledger(arguments: argparse.Namespace) -> None:
    """Print the verdict on every claim. With STUDY, also print the verdicts of your own runs."""
    from trialogue.display.terminal import console
    from trialogue_lab.ledger import ledger, ledger_records, own_entries, select
    from trialogue_lab.ledger.pages import terminal

    _check_folder(arguments.results)
    if arguments.study:
        chosen = [studies.find(name) for name in dict.fromkeys(arguments.study)]
    else:
        chosen = list(studies.importable(_complain))
    entries = ledger(chosen, arguments.results)
    own = [
        each
        for entry in (entries if arguments.study else ())
        for each in own_entries(entry, arguments.runs, _complain)
    ]
    chosen_claims = {"answers": arguments.verdict or (), "origins": arguments.origin or ()}
    if arguments.json:
        shown = select([*entries, *own], **chosen_claims)
        print(json.dumps(ledger_records(shown), indent=1, ensure_ascii=False, allow_nan=False))
        return
    out = console()
    terminal.print_ledger(out, entries, **chosen_claims, verbose=arguments.verbose)
    if own:
        print(f"\nYour runs in {arguments.runs}:\n")
        terminal.print_ledger(out, own, **chosen_claims, verbose=arguments.verbose)
    elif not arguments.study:
        run_by_you = {path.parents[1].name for path in arguments.runs.glob("*/*/DONE")}
        names = " ".join(study.name for study in chosen if study.name in run_by_you)
        if names:
            print(f"\nYour runs in {arguments.runs}: trialogue ledger {names}")


def report(arguments: argparse.Namespace) -> None:
    """Write the report of the results that count, or of those that are named, as one HTML page."""
    from trialogue.storage import atomic_write, require_folder
    from trialogue_lab.ledger import find_result, judged, ledger
    from trialogue_lab.ledger.pages.report import render_report
    from trialogue_lab.ledger.runs.results import COMMITTED

    if arguments.out:
        require_folder(arguments.out)
    elif arguments.results is not None and not arguments.results.is_dir():
        raise InputError("results", str(arguments.results), "there is no such folder to put the report in")
    folder = arguments.results or Path()
    if arguments.result:
        found = [find_result(name, arguments.results) for name in arguments.result]
        entries = [judged(studies.find(result.study), result) for result in found]
        # The page of one result lies next to its rows, unless they are the committed ones.
        if len(found) == 1 and COMMITTED not in found[0].folder.parents:
            folder = found[0].folder
    else:
        entries = ledger(studies.importable(_complain), arguments.results)
    print(atomic_write(arguments.out or folder / "report.html", render_report(entries)))


def fill(arguments: argparse.Namespace) -> None:
    """Write texts from their templates, with numbers from the results that count."""
    from trialogue.storage import atomic_write, require_folder
    from trialogue_lab.ledger import ledger
    from trialogue_lab.ledger.pages.documents import fill as filled

    into_folder = arguments.out.is_dir()
    if len(arguments.template) > 1 and not into_folder:
        raise InputError("out", str(arguments.out), "several templates need a folder that is there")
    require_folder(arguments.out)
    _check_folder(arguments.results)
    entries = ledger(studies.importable(_complain), arguments.results)
    for path in arguments.template:
        try:
            text = filled(path.read_text(encoding="utf-8"), entries, arguments.measured)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError("template", str(path), f"cannot be read: {error}") from error
        except InputError as error:
            raise InputError("template", str(path), str(error)) from error
        print(atomic_write(arguments.out / path.stem if into_folder else arguments.out, text))


def add(commands: Commands) -> None:
    """Add the commands."""
    commands.add("list", list_studies)
    running = commands.add(
        "run",
        run,
        fields=True,
        add_help=False,
        usage="trialogue run STUDY [--preset PRESET] [--workers N] [--executor WHERE] [--results DIR] [--force] "
        "[--FIELD VALUE ...]",
        epilog="`trialogue run STUDY --help` lists the fields of the study's config.",
    )
    named = [running.add_argument("study", metavar="STUDY", nargs="?", help="name of the study")]
    running.add_argument(
        "--preset", default="default", help="smoke, pilot, default (the default), night, weekend or paper"
    )
    running.add_argument("-h", "--help", action="store_true", help="show this help, and the study's fields")
    piloting = commands.add("pilot", pilot)
    named.append(piloting.add_argument("study", metavar="STUDY", help="name of the study"))
    for measuring in (running, piloting):
        measuring.add_argument("--force", action="store_true", help="measure anew what is finished already")
        measuring.add_argument(
            "--threads",
            metavar="N",
            type=int,
            default=1,
            help="threads of torch (1: small models gain little from more, and lose tenfold on a busy machine)",
        )
        measuring.add_argument(
            "--workers",
            metavar="N",
            type=int,
            help="processes that measure independent parts (1; on Ray as many as there are processors)",
        )
        measuring.add_argument(
            "--executor",
            metavar="WHERE",
            default="local",
            help="local; ray: a Ray cluster for this run; ray://HOST:PORT or ray:ADDRESS: one that is running",
        )
    showing = commands.add("ledger", show_ledger)
    shown = "show only these studies, with your own runs (default: all studies, without your own runs)"
    named.append(showing.add_argument("study", metavar="STUDY", nargs="*", help=shown))
    for argument in named:
        argument.completions = studies.questions  # type: ignore[attr-defined] # for `trialogue completion`
    _add_folder(showing, "--runs", "folder of your own runs (default: ./runs)", Path("runs"))
    showing.add_argument(
        "--verdict",
        metavar="VERDICT",
        action="append",
        choices=("holds", "refuted", "undecided", "not tested", "altered since the run", "withdrawn"),
        help="show only claims with this verdict: holds, refuted, undecided, not tested, altered since the run or "
        "withdrawn; repeat for several (default: all)",
    )
    showing.add_argument(
        "--origin",
        action="append",
        choices=("published", "ours"),
        metavar="ORIGIN",
        help="show only claims of this origin: published or ours (default: both)",
    )
    showing.add_argument("--verbose", action="store_true", help="print the power of undecided claims, too")
    showing.add_argument("--json", action="store_true", help="print one JSON record per claim")
    reporting = commands.add("report", report)
    reporting.add_argument(
        "result", metavar="RESULT", nargs="*", help="a folder, a hash, STUDY@HASH or a study"
    )
    reporting.add_argument("--out", metavar="FILE", type=Path, help="the page (default: report.html in DIR)")
    filling = commands.add("fill", fill)
    filling.add_argument(
        "template",
        metavar="TEMPLATE",
        type=Path,
        nargs="+",
        help="a text with expressions for numbers, named as what it makes with a suffix such as .jinja",
    )
    filling.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="the text to write, or the folder of several"
    )
    _add_folder(filling, "--measured", "rows that benchmarks wrote")
    for writing in (running, piloting):
        _add_folder(writing, "--results", "folder to write the result to (default: ./runs)", Path("runs"))
    for reading in (showing, reporting, filling):
        add_results(reading)


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the folder of results to read."""
    _add_folder(
        parser,
        "--results",
        "folder of results to read (default: the committed results, then ./results and ./runs)",
    )


def _add_folder(
    parser: argparse.ArgumentParser, option: str, described: str, default: Path | None = None
) -> None:
    parser.add_argument(option, metavar="DIR", type=Path, default=default, help=described)
