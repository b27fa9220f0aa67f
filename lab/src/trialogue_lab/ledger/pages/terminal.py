"""Verdicts, tables and comparisons as text for a terminal."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import rich.table
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from trialogue.display.numbers import ABSENT, format_number
from trialogue.display.terminal import grid
from trialogue_lab.ledger.claims.claims import NOT_PRINTED, ORIGINS, Origin
from trialogue_lab.ledger.claims.verdicts import Verdict
from trialogue_lab.ledger.claims.withdrawn import WITHDRAWN, WithdrawnClaim
from trialogue_lab.ledger.entries import Entry, select
from trialogue_lab.ledger.pages.comparison import Comparison
from trialogue_lab.ledger.pages.tables import ResultTable, sheet
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.results import Result
from trialogue_lab.ledger.summary import families, totals_table

_INDENT = 4
"""Columns by which what belongs to a claim is indented below its name."""

_COLOURS = {
    "holds": "green",
    "refuted": "red",
    "undecided": "yellow",
    "not tested": "dim",
    "altered since the run": "magenta",
}
_CLAIMS: Mapping[Origin, str] = {"published": "published claims", "ours": "our claims"}
_HEADLINE = "headline claims"
_SIGNS = {"above": ">", "below": "<", "equal": "="}


def rule_text(verdict: Verdict) -> str:
    """The claim's decision rule, such as "> 0.5", "= 1 ± 0.01" or "> 0.2 (grade)"."""
    criterion = verdict.claim.criterion
    margin = f" ± {criterion.margin:g}" if criterion.margin else ""
    published = verdict.claim.origin == "published"
    grade = " (grade)" if verdict.claim.grade else " (margin ours)" if published and criterion.margin else ""
    return f"{_SIGNS[criterion.direction]} {criterion.threshold:g}{margin}{grade}"


def interval_text(verdict: Verdict) -> str:
    """The interval as "[low, high]"; "exact" where it has no width by nature."""
    if math.isnan(verdict.low):
        return ABSENT
    if not verdict.claim.sampled:
        return "exact"
    return f"[{format_number(verdict.low)}, {format_number(verdict.high)}]"


def replications_text(verdict: Verdict) -> str:
    """How many replications of which unit, such as "5 × training"."""
    if not verdict.claim.sampled:
        return "exact"
    return f"{verdict.replications} × {verdict.claim.unit}"


def published_text(published: str) -> str:
    """The source's words or numbers, a dash if it prints none."""
    return ABSENT if published == NOT_PRINTED else published


def withdrawn_text(claim: WithdrawnClaim) -> str:
    """The date, the last verdict with its numbers, and the reason of a withdrawal."""
    numbers = "" if math.isnan(claim.estimate) else f", {format_number(claim.estimate)}"
    if not math.isnan(claim.low):
        numbers += f" [{format_number(claim.low)}, {format_number(claim.high)}]"
    if claim.published != NOT_PRINTED:
        numbers += f" (in print: {claim.published})"
    return f"withdrawn on {claim.withdrawn_on}; last verdict: {claim.last_verdict}{numbers}. {claim.reason}"


def registered_text(verdict: Verdict) -> str:
    """Whether the claim was registered before the run."""
    return "before" if verdict.registered else "after" if verdict.replications else ABSENT


def result_text(result: Result | None) -> str:
    """The preset and hash of a result, such as "default@0a1b2c3d4e5f"."""
    return f"{result.preset or 'custom'}@{result.hash}" if result else ABSENT


FILTERS: Mapping[str, Callable[..., str]] = {
    "number": format_number,
    "interval": interval_text,
    "replications": replications_text,
    "rule": rule_text,
    "printed": published_text,
    "registered": registered_text,
    "result": result_text,
    "withdrawal": withdrawn_text,
}
"""Filters of the templates of pages, by name."""


def print_table(out: Console, table: ResultTable, rows: Rows) -> None:
    """Our numbers beside the published ones."""
    shown = sheet(table, rows)
    heads = [shown.corner, *(f"{head}\n{whose}" for head, whose in shown.columns)]
    out.print(grid(table.title, heads, [(label, *cells) for label, cells in shown.lines]))
    out.print(Text("\n".join(filter(None, (table.source, table.note))), style="dim"))


def print_ledger(
    out: Console,
    entries: Sequence[Entry],
    *,
    answers: Collection[str] = (),
    origins: Collection[str] = (),
    verbose: bool = False,
) -> None:
    """Print the verdict on every claim, and the total over all of them.

    Args:
        out: The console.
        entries: Entries of the ledger.
        answers: Print only claims with these verdicts, such as "refuted" or "withdrawn". Empty for all.
        origins: Print only claims of these origins, "published" or "ours". Empty for both.
        verbose: Print the power of the pilot and the smallest effect that could have been seen with every undecided
            claim.

    The total always counts all `entries`.
    """
    for entry in select(entries, answers=answers, origins=origins):
        _print_entry(out, entry, verbose)
        out.print()
    print_totals(out, entries)


def print_totals(out: Console, entries: Sequence[Entry]) -> None:
    """Print the numbers of statements and of claims by verdict, and the number of families with their error rate."""
    (_, *heads), *lines = totals_table(entries)
    table = rich.table.Table("Total", box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head, justify="right")
    for line in lines:
        table.add_row(*line)
    out.print(table)
    out.print(Text(str(families(entries)), style="dim"))


def _print_entry(out: Console, entry: Entry, verbose: bool) -> None:
    """Print the claims of one study: its headline claims, then the others by origin, then the withdrawn ones."""
    out.print(Text(f"{entry.study.name}: {entry.study.question}", style="bold"))
    if entry.result:
        out.print(Text(f"{result_text(entry.result)} ({entry.scale})", style="dim"))
        by_id = {verdict.claim.id: verdict for verdict in entry.verdicts}
        headline = [by_id[claim] for claim in entry.study.headline if claim in by_id]
        others = [verdict for verdict in entry.verdicts if verdict not in headline]
        _print_claims(out, _HEADLINE, headline, verbose)
        for origin in ORIGINS:
            chosen = [verdict for verdict in others if verdict.claim.origin == origin]
            _print_claims(out, _CLAIMS[origin], chosen, verbose)
    for line in _untested(entry):
        out.print(Text(line, style="dim"))
    if entry.withdrawn:
        out.print(Text("withdrawn claims", style="bold"))
    for claim in entry.withdrawn:
        out.print(Text.assemble((WITHDRAWN.ljust(10), "dim"), f"  {claim.id} ({claim.origin})"))
        out.print(_indented(withdrawn_text(claim), "dim"))


def _print_claims(out: Console, title: str, verdicts: Sequence[Verdict], verbose: bool) -> None:
    """Print a group of claims: verdict and name, then a line of numbers, then what else must be known."""
    if not verdicts:
        return
    heads = ("estimate", "in print", "interval", "claimed")
    lines = [
        (
            format_number(verdict.estimate),
            published_text(verdict.claim.published),
            interval_text(verdict),
            rule_text(verdict),
        )
        for verdict in verdicts
    ]
    estimate, in_print, interval, claimed = (
        max(map(len, column)) for column in zip(heads, *lines, strict=True)
    )
    claimed = min(claimed, 20)
    room = out.width - _INDENT - estimate - interval - claimed - 3 * 2
    widths = (estimate, max(8, min(in_print, room, 48)), interval, claimed)

    def print_numbers(cells: Sequence[str], style: str = "") -> None:
        numbers = rich.table.Table.grid(padding=(0, 2), pad_edge=False)
        for head, width in zip(heads, widths, strict=True):
            numbers.add_column(width=width, justify="right" if head in ("estimate", "interval") else "left")
        numbers.add_row(*(Text(cell, style=style) for cell in cells))
        out.print(Padding(numbers, (0, 0, 0, _INDENT)))

    out.print(Text(title, style="bold"))
    print_numbers(heads, "bold")
    setting = ""
    for verdict, cells in zip(verdicts, lines, strict=True):
        # Headline claims are of both origins.
        origin = f"{verdict.claim.origin}, " if title == _HEADLINE else ""
        title = verdict.claim.title and f"{verdict.claim.title}  "
        claim = f"{verdict.claim.id} ({origin}{replications_text(verdict)})"
        out.print(
            Text.assemble(
                (f"{verdict.answer:10}", _COLOURS[verdict.answer]),
                f"  {title}",
                (claim, "dim" if title else ""),
            )
        )
        print_numbers(cells)
        if verdict.claim.setting:
            is_same = verdict.claim.setting == setting
            out.print(_indented(f"setting: {'as above' if is_same else verdict.claim.setting}", "dim"))
        setting = verdict.claim.setting or setting
        for note in _notes(verdict, verbose):
            out.print(_indented(note, "dim"))


def _notes(verdict: Verdict, verbose: bool) -> list[str]:
    """Return what the numbers of a claim leave out."""
    # The numbers show that an interval crosses the threshold; the rest of the reason is about power.
    is_plain = verdict.answer == "undecided" and not math.isnan(verdict.low) and not verbose
    if verdict.answer not in ("holds", "refuted", "not tested") and not is_plain:
        return [verdict.reason, *verdict.remarks]
    return list(verdict.remarks)


def _untested(entry: Entry) -> list[str]:
    """Return why claims of a study were not tested: a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for verdict in entry.verdicts:
        if verdict.answer == "not tested":
            by_reason.setdefault(verdict.reason, []).append(verdict.claim.id)
    return [
        f"not tested, {reason}: "
        + (f"all {len(claims)} claims" if len(claims) == len(entry.study.claims) else ", ".join(claims))
        for reason, claims in by_reason.items()
    ]


def _indented(words: str, style: str = "") -> Padding:
    return Padding(Text(words, style=style), (0, 0, 0, _INDENT))


def print_comparison(out: Console, comparison: Comparison, first: Result, second: Result) -> None:
    """Configs, claims and tables of two results, with differences."""
    pair = (result_text(first), result_text(second))
    out.print(grid("config", ("field", *pair), comparison.config))
    out.print(grid("claims", ("claim", *pair, "difference"), comparison.claims))
    for title, lines in comparison.tables:
        out.print(grid(title, ("cell", *pair, "difference"), lines))
