"""Verdicts, tables and comparisons as text for a terminal."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import rich.table
from rich.console import Console
from rich.text import Text

from trialogue.ledger.claims.claims import ORIGINS
from trialogue.ledger.claims.verdicts import LATE, Verdict
from trialogue.ledger.entries import Entry
from trialogue.ledger.pages.comparison import Comparison
from trialogue.ledger.pages.tables import ABSENT, ResultTable, format_number, sheet
from trialogue.ledger.rows import Rows
from trialogue.ledger.runs.results import Result

_COLOURS = {
    "holds": "green",
    "refuted": "red",
    "undecided": "yellow",
    "not tested": "dim",
    "altered since the run": "magenta",
}
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


def registered_text(verdict: Verdict) -> str:
    """Whether the claim was registered before the run."""
    return "before" if verdict.registered else "after" if verdict.replications else ABSENT


def result_text(result: Result | None) -> str:
    """The preset and hash of a result, such as "default@0a1b2c3d4e5f"."""
    return f"{result.preset or 'custom'}@{result.hash}" if result else ABSENT


def console() -> Console:
    """Where the commands print: as wide as the terminal, or wide enough for a file or a pipe."""
    found = Console(soft_wrap=False, highlight=False)
    return found if found.is_terminal else Console(width=140, highlight=False)


def grid(
    title: str, heads: Iterable[str], lines: Iterable[Sequence[str | Text]], numbers: int = 1
) -> rich.table.Table:
    """A rich table whose columns from the `numbers`-th on are set to the right."""
    grid = rich.table.Table(title=Text(title), title_justify="left", title_style="bold", header_style="")
    for place, head in enumerate(heads):
        justify: Literal["left", "right"] = "right" if place >= numbers else "left"
        grid.add_column(Text(head, style="bold"), justify=justify, overflow="fold")
    for line in lines:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in line))
    return grid


def print_table(out: Console, table: ResultTable, rows: Rows) -> None:
    """Our numbers beside the published ones."""
    shown = sheet(table, rows)
    heads = [shown.corner, *(f"{head}\n{whose}" for head, whose in shown.columns)]
    out.print(grid(table.title, heads, [(label, *cells) for label, cells in shown.lines]))
    out.print(Text("\n".join(filter(None, (table.source, table.note))), style="dim"))


def print_ledger(out: Console, entries: Iterable[Entry]) -> None:
    """One line per claim of every study, published claims first, and what else there is to say of each."""
    heads = ("claim", "verdict", "estimate", "interval", "claimed", "replications", "registered")
    for entry in entries:
        out.print(Text(f"{entry.study.name}: {entry.study.question}", style="bold"))
        for origin in ORIGINS:
            verdicts = [verdict for verdict in entry.verdicts if verdict.claim.origin == origin]
            if not verdicts:
                continue
            lines = [
                (
                    verdict.claim.id,
                    Text(verdict.answer, style=_COLOURS[verdict.answer]),
                    format_number(verdict.estimate),
                    interval_text(verdict),
                    rule_text(verdict),
                    replications_text(verdict),
                    registered_text(verdict),
                )
                for verdict in verdicts
            ]
            where = f", {result_text(entry.result)} ({entry.scale})" if entry.result else ""
            out.print(grid(f"{origin}{where}", heads, lines, numbers=2))
        for line in _explained(entry.verdicts):
            out.print(Text(line, style="dim"))


def _explained(verdicts: Sequence[Verdict]) -> list[str]:
    """What the lines of the ledger leave out: why claims were not tested, then a line for each that needs words."""
    untested: dict[str, list[str]] = {}
    lines = []
    for verdict in verdicts:
        words = [remark for remark in verdict.remarks if remark != LATE]
        if verdict.answer == "not tested":
            untested.setdefault(verdict.reason, []).append(verdict.claim.id)
        elif verdict.answer not in ("holds", "refuted"):
            words.insert(0, verdict.reason)
        if words:
            lines.append(f"{verdict.claim.id}: {'; '.join(words)}")
    for reason, claims in untested.items():
        whose = "every claim" if len(claims) == len(verdicts) else ", ".join(claims)
        lines.append(f"not tested, {reason}: {whose}")
    return lines


def print_comparison(out: Console, comparison: Comparison, first: Result, second: Result) -> None:
    """Configs, claims and tables of two results, with differences."""
    pair = (result_text(first), result_text(second))
    out.print(grid("config", ("field", *pair), comparison.config))
    out.print(grid("claims", ("claim", *pair, "difference"), comparison.claims))
    for title, lines in comparison.tables:
        out.print(grid(title, ("cell", *pair, "difference"), lines))
