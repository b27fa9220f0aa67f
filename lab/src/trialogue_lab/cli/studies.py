"""The commands `trialogue list`, `run`, `pilot`, `ledger`, `report` and `fill`."""

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trialogue.cli.parsing.commands import Commands
from trialogue.cli.parsing.fields import override_fields
from trialogue.errors import InputError, NotFoundError
from trialogue_lab import studies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trialogue_lab.ledger import Result, Study
    from trialogue_lab.ledger.stored import StudySummary


def list_studies(_: argparse.Namespace) -> None:
    """List all studies with their publication, computing time and question."""
    from trialogue.display.columns import output_width
    from trialogue_lab.ledger.pages.screens import studies_screen
    from trialogue_lab.ledger.stored import stored_summaries

    print(
        studies_screen(studies.questions(), stored_summaries(studies.modules(), stale=True), output_width())
    )


def run(arguments: argparse.Namespace) -> None:
    """Run or resume a study, print its main verdicts unless it is a smoke run, and write a report with its tables."""
    if arguments.study is None:
        if not arguments.help:
            raise InputError("study", None, "give the name of a study: see `trialogue list`")
        arguments.parser.print_help()
        return
    study = studies.find(arguments.study)
    if arguments.help:
        arguments.parser.epilog = None
        arguments.parser.print_help()
        print(f"\n{_describe_presets(study)}\n")
        arguments.overrides = ["--help"]
    config = override_fields(
        study.preset(arguments.preset),
        arguments.overrides,
        name=study.name,
        prog=f"trialogue run {study.name}",
        description=f"Config fields, with the values of the preset {arguments.preset}.",
    )
    result = _execute(study, config, arguments)

    from trialogue.display.terminal import console
    from trialogue.storage import atomic_write
    from trialogue_lab.ledger import judged
    from trialogue_lab.ledger.entries import counting_result
    from trialogue_lab.ledger.pages import terminal
    from trialogue_lab.ledger.pages.report import render_report
    from trialogue_lab.ledger.runs.results import COMMITTED, RUNS

    entry = judged(study, result)
    counting = counting_result(study, COMMITTED)
    is_other = counting is not None and counting.folder != result.folder
    is_tested = any(verdict.answer != "not tested" for verdict in entry.verdicts)
    committed = judged(study, counting) if is_other and is_tested else None
    out = console()
    is_smoke = entry.closest == "smoke" and not is_tested
    if is_smoke:
        terminal.print_smoke_run(out, entry)
    else:
        terminal.print_headlines(out, entry, committed)
    report = atomic_write(result.folder / "report.html", render_report([entry]))
    place = "" if arguments.results == RUNS else f" --runs {arguments.results}"
    claims = "the committed verdicts" if is_smoke else "all claims, next to the committed verdicts"
    print(f"\n{claims}: trialogue ledger {study.name}{'' if is_smoke else place}")
    similar = None if committed else _find_similar(study, result, arguments.results)
    mine, other = (
        f"{study.name}@{one.hash}" if arguments.results == RUNS else one.folder
        for one in (result, similar or result)
    )
    if committed:
        print(f"number by number next to the committed result: trialogue compare {study.name} {mine}")
    elif similar:
        print(f"next to your run with the most similar settings: trialogue compare {other} {mine}")
    print(f"rows: {result.folder / 'rows.jsonl'}\nreport: {report}")


def _describe_presets(study: "Study[Any]") -> str:
    """Return a table of the presets of a study, with the computing time of the committed result."""
    from trialogue.display.columns import output_width, text_table, wrap_words
    from trialogue_lab.ledger.pages.screens import format_duration
    from trialogue_lab.ledger.runs.larger import estimate_hours
    from trialogue_lab.ledger.runs.results import COMMITTED, finished_results

    results = finished_results(study.name, COMMITTED, _warn)
    measured = {found.preset: format_duration(found.provenance["seconds"]) for found in results}
    for name in ("night", "weekend", "week"):
        hours = [estimate_hours(study, found, name) for found in results if name in study.presets]
        known = [time for time in hours if time is not None]
        if known and name not in measured:
            measured[name] = f"about {format_duration(3600 * known[-1])}"
    lines = [("preset", "computing time", "purpose")]
    for name in study.presets:
        time, purpose = _PRESETS[name]
        lines.append((name, measured.get(name, time), purpose))
    note = (
        "Times in numbers are those of committed results, on one or two processor cores and summed over processes, or "
        "follow from them (about). "
        "Times in words are usual ones, not measured for this study. The page docs/explanation/paper-presets.md "
        "estimates the presets weekend and paper."
    )
    width = output_width()
    return "\n".join(
        [f"Presets of {study.name}", text_table(lines, width, numbers=3), *wrap_words(note, width)]
    )


_PRESETS = {
    "smoke": ("seconds", "check that everything works; no claim is tested"),
    "pilot": ("minutes", "choose settings, with separate seeds; no claim is tested"),
    "default": ("minutes to hours", "test the claims at a reduced scale"),
    "night": ("hours", "test the claims with more repetitions or longer trainings"),
    "weekend": ("hours", "test claims that the preset night leaves undecided"),
    "week": ("hours", "test claims that the preset weekend leaves undecided"),
    "paper": ("estimated", "test the claims at the scale of the publication"),
}
"""Usual computing time and purpose of a preset, by name."""


def _find_similar(study: "Study[Any]", result: "Result", runs: Path) -> "Result | None":
    """Return the user's run whose settings differ least, of those closest to the same preset."""
    from trialogue_lab.ledger.runs.results import finished_results
    from trialogue_lab.ledger.runs.scale import changed_fields

    def closest(one: "Result") -> str:
        return changed_fields(study, one.config)[0]

    def count_differences(other: "Result") -> int:
        names = result.config.keys() | other.config.keys()
        return sum(result.config.get(name) != other.config.get(name) for name in names)

    found = [one for one in finished_results(study.name, runs, _warn) if one.folder != result.folder]
    others = [one for one in found if one.version == study.version and closest(one) == closest(result)]
    return min(others, key=count_differences, default=None)


def pilot(arguments: argparse.Namespace) -> None:
    """Run the pilot of a study, which has separate seeds, and store its estimates in the study's folder."""
    study = studies.find(arguments.study)
    result = _execute(study, study.preset("pilot"), arguments)

    from trialogue_lab.ledger.runs.piloting import compute_pilot

    print(compute_pilot(study, result).write(study.pilot_file))


def _warn(line: str) -> None:
    print(f"trialogue: {line}", file=sys.stderr)


def _check_folder(name: str, folder: Path | None) -> None:
    """Raise `InputError` if the folder of an option was given and does not exist."""
    if folder is not None and not folder.is_dir():
        raise InputError(name, str(folder), "the folder does not exist")


def _execute(study: "Study[Any]", config: object, arguments: argparse.Namespace) -> "Result":
    """Run a study with the threads, workers and executor of the command line."""
    import torch

    from trialogue.executors import make_executor
    from trialogue.validation import Count, check
    from trialogue_lab.ledger.runs.execution import execute

    for name in ("threads", "workers"):
        if getattr(arguments, name) is not None:
            check(name, getattr(arguments, name), Count)
    torch.set_num_threads(arguments.threads)
    return execute(
        study,
        config,
        arguments.results,
        force=arguments.force,
        executor=make_executor(arguments.executor, arguments.workers, arguments.threads),
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )


def show_ledger(arguments: argparse.Namespace) -> None:
    """Print how many claims hold, by publication and study, or the claims of STUDY next to your own runs."""
    from trialogue.display.columns import output_width, wrap_words
    from trialogue_lab.ledger.claims.documents import find_documents
    from trialogue_lab.ledger.pages.screens import (
        claims_screen,
        describe_empty,
        select_claims,
        summary_screen,
    )

    _check_folder("results", arguments.results)
    if arguments.runs != Path("runs"):
        _check_folder("runs", arguments.runs)
    filters: dict[str, Any] = {
        "answers": [answer for found in arguments.verdict or () for answer in found],
        "origins": arguments.origin or (),
        "statement": arguments.statement or "",
        "documents": [key for text in arguments.source or () for key in find_documents(text)],
    }
    width = arguments.width or output_width()
    if arguments.study or arguments.json or arguments.verbose:
        _show_studies(arguments, filters, width)
        return
    summaries = _collect_summaries(arguments.results)
    own = [f"    {line}" for found in summaries for line in _list_own_runs(found, arguments.runs)]
    names = " ".join(dict.fromkeys(line.split("@")[0].strip() for line in own))
    if any(filters.values()):
        found_claims = sum(
            len(select_claims(found, statement=filters["statement"]).claims) for found in summaries
        )
        if not found_claims:
            raise _no_claim(filters["statement"])
        chosen = [select_claims(found, **filters) for found in summaries]
        if any(found.claims for found in chosen):
            brief = filters["answers"] == ["undecided"] and not filters["statement"]
            print(claims_screen(chosen, width, summaries, brief=brief))
        else:
            print("\n".join(wrap_words(describe_empty(found_claims, **filters), width)))
        found_names = {found.name for found in chosen if found.claims}
        if names := " ".join(name for name in names.split() if name in found_names):
            print(f"\nFor the verdicts of your own runs in the folder {arguments.runs}:")
            print(_format_ledger_command(names.split(), arguments))
        return
    print(summary_screen(summaries, width))
    if own:
        print("\n".join([f"\nYour runs in {arguments.runs}: trialogue ledger {names}", *own]))


def _format_ledger_command(names: "Sequence[str]", arguments: argparse.Namespace) -> str:
    """Return the command `trialogue ledger` for some studies, with the filters and folders of the command line."""
    words = ["trialogue", "ledger", *names]
    for option in ("verdict", "source", "origin", "statement", "runs", "results"):
        given = getattr(arguments, option)
        values = given if isinstance(given, list) else [given] if given else []
        for value in values:
            for text in value if isinstance(value, tuple) else (str(value),):
                words += [f"--{option}", text] if (option, text) != ("runs", "runs") else []
    return shlex.join(words)


def _no_claim(statement: str, names: str = "") -> NotFoundError:
    """Return the error for a text of `--statement` that finds no claim. `names` says of which studies."""
    hint = (
        f"No claim{names} has the id {statement!r}, or all of these words in its study, place, title or statement. "
        "Try fewer words, or a place of docs/coverage.md, such as 'Table 3.16'."
    )
    return NotFoundError("statement", statement, hint)


def _collect_summaries(results: Path | None) -> "list[StudySummary]":
    """Return the verdicts of all studies, those of the committed results from the stored file."""
    from trialogue_lab.ledger.stored import stored_summaries, summarize

    modules = studies.modules()
    stored = stored_summaries(modules) if results is None else {}
    fresh = {}
    if len(stored) < len(modules):
        from trialogue_lab.ledger import ledger

        missing = [name for name in modules if name not in stored]
        if len(missing) > 1:
            _warn(f"computing the verdicts of {len(missing)} studies, which may take a minute")
        for study in studies.importable(_warn, missing):
            fresh[study.name] = summarize(ledger([study], results)[0])
    found = stored | fresh
    return [found[name] for name in modules if name in found]


def _list_own_runs(found: "StudySummary", runs: Path) -> list[str]:
    """Return one line for each finished run of a study in the user's folder."""
    lines = []
    for done in sorted((runs / found.name).glob("*/DONE")):
        if found.result.partition("@")[2] != done.parent.name:
            preset = json.loads((done.parent / "config.json").read_text(encoding="utf-8")).get("preset")
            settings = f"preset {preset}" if preset else "other settings"
            lines.append(f"{found.name}@{done.parent.name} ({settings})")
    return lines


def _show_studies(arguments: argparse.Namespace, filters: "Mapping[str, Any]", width: int) -> None:
    """Print the claims of the named studies, from their measurements, or the records of claims as JSON."""
    from trialogue.display.terminal import console
    from trialogue_lab.ledger import ledger, ledger_records, own_entries, select
    from trialogue_lab.ledger.pages import terminal

    if arguments.study:
        chosen = [studies.find(name) for name in dict.fromkeys(arguments.study)]
    else:
        chosen = list(studies.importable(_warn))
    entries = ledger(chosen, arguments.results)
    own = [
        (entry, found)
        for entry in entries
        if arguments.study
        for found in own_entries(entry, arguments.runs, _warn)
    ]
    if arguments.json:
        shown = select([*entries, *(found for _, found in own)], **filters)
        print(json.dumps(ledger_records(shown), indent=1, ensure_ascii=False, allow_nan=False))
        return
    statement = filters["statement"]
    if statement and not ledger_records(select(entries, statement=statement)):
        names = f" of {', '.join(arguments.study)}" if arguments.study else ""
        raise _no_claim(statement, names)
    out = console(width)
    terminal.print_ledger(out, entries, **filters, verbose=arguments.verbose)
    if own:
        print(f"\nYour runs in {arguments.runs}:\n")
    for entry, found in own:
        if selected := select([found], **filters):
            terminal.print_own_run(out, entry, selected[0], verbose=arguments.verbose)
        else:
            terminal.print_unselected(out, found)


def report(arguments: argparse.Namespace) -> None:
    """Write a report of the given results, or of all results that count, as one HTML page."""
    from trialogue.storage import atomic_write, require_folder
    from trialogue_lab.ledger import find_result, judged, ledger
    from trialogue_lab.ledger.pages.report import render_report
    from trialogue_lab.ledger.runs.results import COMMITTED

    if arguments.out:
        require_folder(arguments.out)
    elif arguments.results is not None and not arguments.results.is_dir():
        raise InputError(
            "results", str(arguments.results), "the folder does not exist: create it, or use --out FILE"
        )
    folder = arguments.results or Path()
    if arguments.result:
        found = [find_result(name, arguments.results) for name in arguments.result]
        entries = [judged(studies.find(result.study), result) for result in found]
        # The report of one result is written next to its rows, but never into the committed results.
        if len(found) == 1 and COMMITTED not in found[0].folder.parents:
            folder = found[0].folder
    else:
        entries = ledger(studies.importable(_warn), arguments.results)
    print(atomic_write(arguments.out or folder / "report.html", render_report(entries)))


def fill(arguments: argparse.Namespace) -> None:
    """Fill documentation templates with numbers from the results that count."""
    from trialogue.storage import atomic_write, require_folder
    from trialogue_lab.ledger import ledger
    from trialogue_lab.ledger.pages.documents import fill as fill_template

    into_folder = arguments.out.is_dir()
    if len(arguments.template) > 1 and not into_folder:
        raise InputError("out", str(arguments.out), "give an existing folder for several templates")
    require_folder(arguments.out)
    _check_folder("results", arguments.results)
    entries = ledger(studies.importable(_warn), arguments.results)
    for path in arguments.template:
        try:
            text = fill_template(path.read_text(encoding="utf-8"), entries, arguments.measured)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError("template", str(path), f"cannot be read: {error}") from error
        except InputError as error:
            raise InputError("template", str(path), str(error)) from error
        print(atomic_write(arguments.out / path.stem if into_folder else arguments.out, text))


def _parse_width(text: str) -> int:
    """Return a width of the output, for argparse."""
    if not text.isdecimal() or int(text) < 40:
        raise argparse.ArgumentTypeError(f"{text!r}: use a whole number of at least 40")
    return int(text)


def _parse_verdict(text: str) -> tuple[str, ...]:
    """Return the verdicts that begin with a word, or those that the tables call "other", for argparse."""
    from trialogue_lab.ledger.claims.answers import LEDGER_ANSWERS

    word = text.strip().lower()
    if word == "other":
        return LEDGER_ANSWERS[3:]
    found = tuple(answer for answer in LEDGER_ANSWERS if word and answer.startswith(word))
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: use {_VERDICTS}")
    return found


_VERDICTS = "holds, refuted, undecided, not tested, altered, withdrawn, or other for the last three"

_SEARCHED = "has this id, or all of these words in its study, source, title or statement"

_HELP = {
    "run STUDY": "run this study",
    "--preset": "use this preset: smoke, pilot, default, night, weekend, week or paper (default: default)",
    "--help": "show this help and the config fields of the study",
    "pilot STUDY": "run the pilot of this study",
    "--force": "measure finished tasks again (default: off)",
    "--threads": "use this many threads of torch per process (default: 1, usually fastest for small models)",
    "--workers": "measure tasks in this many processes (default: 1; with Ray, the number of processors)",
    "--executor": "measure on: local (default), ray (new Ray cluster), ray://HOST:PORT or ray:ADDRESS (running one)",
    "run --results": "write the result to this folder (default: ./runs)",
    "ledger STUDY": "show the claims of these studies, with your own runs (default: counts of all studies)",
    "--runs": "read your own runs from this folder (default: ./runs)",
    "--verdict": f"show only claims with this verdict: {_VERDICTS}; repeatable (default: all)",
    "--source": "show only claims of this publication: its key in `trialogue ledger`, or words of its title; "
    "repeatable (default: all)",
    "--origin": "show only claims of this origin: published or ours; repeatable (default: both)",
    "--statement": "show only claims with all of these words in their study, source ('Table 3.16'), title or "
    "statement, or with this id (default: all)",
    "--width": "print lines of at most this many characters, from 40 (default: the width of the terminal)",
    "--verbose": "show all claims, and add id, source, registered statement and remarks of each (default: main claims)",
    "--json": "print a JSON list with one record per claim (default: text)",
    "RESULT": "show these results: a folder, a hash, STUDY@HASH or a study (default: all results that count)",
    "report --out": "write the page to this file (default: report.html in DIR)",
    "TEMPLATE": "fill these templates; the name of a text is that of its template without the suffix .jinja",
    "fill --out": "write the text to this file, or several texts to this folder (required)",
    "--measured": "read the rows of benchmarks from this folder (default: .)",
    "--results": "read results from this folder (default: the committed results, then ./results and ./runs)",
}


def add(commands: Commands) -> None:
    """Add the commands."""
    commands.add("list", list_studies, group="Laboratory")
    running = commands.add(
        "run",
        run,
        group="Laboratory",
        fields=True,
        add_help=False,
        usage="trialogue run STUDY [--preset PRESET] [--workers N] [--executor WHERE]\n"
        "                           [--results DIR] [--force] [--FIELD VALUE ...]",
        epilog="Use `trialogue run STUDY --help` for the config fields of a study and the time of its presets.",
    )
    piloting = commands.add("pilot", pilot, group="Laboratory")
    showing = commands.add("ledger", show_ledger, group="Laboratory")
    for name, parser, count in (("run", running, "?"), ("pilot", piloting, None), ("ledger", showing, "*")):
        argument = parser.add_argument("study", metavar="STUDY", nargs=count, help=_HELP[f"{name} STUDY"])
        argument.completions = studies.questions  # type: ignore[attr-defined] # for `trialogue completion`
    running.add_argument("--preset", default="default", help=_HELP["--preset"])
    running.add_argument("-h", "--help", action="store_true", help=_HELP["--help"])
    for parser in (running, piloting):
        parser.add_argument("--force", action="store_true", help=_HELP["--force"])
        parser.add_argument("--threads", metavar="N", type=int, default=1, help=_HELP["--threads"])
        parser.add_argument("--workers", metavar="N", type=int, help=_HELP["--workers"])
        parser.add_argument("--executor", metavar="WHERE", default="local", help=_HELP["--executor"])
        _add_folder(parser, "--results", _HELP["run --results"], Path("runs"))
    _add_folder(showing, "--runs", _HELP["--runs"], Path("runs"))
    showing.add_argument("--source", metavar="TEXT", action="append", help=_HELP["--source"])
    showing.add_argument(
        "--verdict", metavar="VERDICT", action="append", type=_parse_verdict, help=_HELP["--verdict"]
    )
    origins = ("published", "ours")
    showing.add_argument(
        "--origin", metavar="ORIGIN", action="append", choices=origins, help=_HELP["--origin"]
    )
    showing.add_argument("--statement", metavar="TEXT", help=_HELP["--statement"])
    showing.add_argument("--width", metavar="N", type=_parse_width, help=_HELP["--width"])
    showing.add_argument("--verbose", action="store_true", help=_HELP["--verbose"])
    showing.add_argument("--json", action="store_true", help=_HELP["--json"])
    reporting = commands.add("report", report, group="Laboratory")
    reporting.add_argument("result", metavar="RESULT", nargs="*", help=_HELP["RESULT"])
    reporting.add_argument("--out", metavar="FILE", type=Path, help=_HELP["report --out"])
    filling = commands.add("fill", fill, group="Laboratory")
    filling.add_argument("template", metavar="TEMPLATE", type=Path, nargs="+", help=_HELP["TEMPLATE"])
    filling.add_argument("--out", metavar="FILE", type=Path, required=True, help=_HELP["fill --out"])
    _add_folder(filling, "--measured", _HELP["--measured"])
    for parser in (showing, reporting, filling):
        add_results(parser)


def add_results(parser: argparse.ArgumentParser) -> None:
    """Add the option `--results`, the folder of results to read."""
    _add_folder(parser, "--results", _HELP["--results"])


def _add_folder(parser: argparse.ArgumentParser, option: str, text: str, default: Path | None = None) -> None:
    parser.add_argument(option, metavar="DIR", type=Path, default=default, help=text)
