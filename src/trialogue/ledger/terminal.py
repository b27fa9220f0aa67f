"""Verdicts, tables and comparisons as text for a terminal."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import rich.table
from rich.console import Console
from rich.text import Text

from trialogue.ledger.claims import Verdict
from trialogue.ledger.comparison import Comparison
from trialogue.ledger.entries import Entry
from trialogue.ledger.results import Result
from trialogue.ledger.tables import ABSENT, Table, format_number, sheet

_COLOURS = {"holds": "green", "refuted": "red", "undecided": "yellow", "not tested": "dim"}
_SIGNS = {"above": ">", "below": "<", "equal": "="}


def rule_text(verdict: Verdict) -> str:
    """The claim's decision rule, such as "> 0.5" or "= 1 ± 0.01"."""
    claim = verdict.claim
    margin = f" ± {claim.margin:g}" if claim.margin else ""
    return f"{_SIGNS[claim.direction]} {claim.threshold:g}{margin}"


def interval_text(verdict: Verdict) -> str:
    """The interval as "[low, high]"; "exact" where it has no width by nature."""
    if math.isnan(verdict.low):
        return ABSENT
    if verdict.claim.unit == "exact":
        return "exact"
    return f"[{format_number(verdict.low)}, {format_number(verdict.high)}]"


def replications_text(verdict: Verdict) -> str:
    """How many replications of which unit, such as "5 × training"."""
    if verdict.claim.unit == "exact":
        return "exact"
    return f"{verdict.replications} × {verdict.claim.unit}"


def result_text(result: Result | None) -> str:
    """The preset and hash of a result, such as "default@0a1b2c3d4e5f"."""
    return f"{result.preset or 'custom'}@{result.hash}" if result else ABSENT


def console() -> Console:
    """Where the commands print: as wide as the terminal, or wide enough for a file or a pipe."""
    found = Console(soft_wrap=False, highlight=False)
    return found if found.is_terminal else Console(width=140, highlight=False)


def _grid(
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


def print_table(out: Console, table: Table, result: Result) -> None:
    """Our numbers beside the published ones."""
    shown = sheet(table, result.rows)
    heads = [shown.corner, *(f"{head}\n{whose}" for head, whose in shown.columns)]
    out.print(_grid(table.title, heads, [(label, *cells) for label, cells in shown.lines]))
    out.print(Text("\n".join(filter(None, (table.source, table.note))), style="dim"))


def print_ledger(out: Console, entries: Iterable[Entry]) -> None:
    """One line per claim of every study."""
    heads = ("claim", "verdict", "estimate", "interval", "claimed", "replications", "preset@hash")
    for entry in entries:
        lines = [
            (
                verdict.claim.id,
                Text(verdict.answer, style=_COLOURS[verdict.answer]),
                format_number(verdict.estimate),
                interval_text(verdict),
                rule_text(verdict),
                replications_text(verdict),
                result_text(entry.result),
            )
            for verdict in entry.verdicts
        ]
        out.print(_grid(f"{entry.study.name}: {entry.study.question}", heads, lines, numbers=2))
        obstacles: dict[str, list[str]] = {}
        for verdict in entry.verdicts:
            if verdict.answer == "not tested":
                obstacles.setdefault(verdict.reason, []).append(verdict.claim.id)
        for reason, claims in obstacles.items():
            whose = "every claim" if len(claims) == len(entry.verdicts) else ", ".join(claims)
            out.print(Text(f"not tested, {reason}: {whose}", style="dim"))


def print_comparison(out: Console, comparison: Comparison, first: Result, second: Result) -> None:
    """Configs, claims and tables of two results, with differences."""
    pair = (result_text(first), result_text(second))
    out.print(_grid("config", ("field", *pair), comparison.config))
    out.print(_grid("claims", ("claim", *pair, "difference"), comparison.claims))
    for title, lines in comparison.tables:
        out.print(_grid(title, ("cell", *pair, "difference"), lines))
