"""Tables of our numbers beside the published ones: one object, shown by the terminal and by the report."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pandas import DataFrame, Series

from trialogue.display.numbers import format_number
from trialogue_lab.ledger.claims.statistics import Statistic
from trialogue_lab.ledger.rows import NoRows, Rows

Cells = Mapping[str, Mapping[str, "Statistic | Series[float] | float | str | None"]]
"""Cells by the label of their row, then of their column.

A cell is a statistic or a series over replications, shown as mean ± deviation, or a number or text as it is.
"""


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """A table of statistics, beside published numbers where there are some.

    `cells` are given by row label and column label, or by a function of the rows that returns them so, or as a
    DataFrame. A `Statistic` or a series is shown as its mean ± one standard deviation over replications. `published`
    has the same labels, and the number or the text in print. `digits` are significant digits, `rows_are` heads the
    first column.
    """

    title: str
    source: str
    cells: "Cells | Callable[[Rows], Cells | DataFrame]"
    published: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    rows_are: str = ""
    note: str = ""
    digits: int = 3

    def filled(self, rows: Rows) -> dict[tuple[str, str], "Spread"]:
        """Every cell that `rows` fill, by the labels of its row and column."""
        try:
            cells = self.cells(rows) if callable(self.cells) else self.cells
        except NoRows:
            return {}
        if isinstance(cells, DataFrame):
            return {
                (str(label), str(head)): Spread(cells.iat[i, j])
                for i, label in enumerate(cells.index)
                for j, head in enumerate(cells.columns)
            }
        return {
            (str(label), str(head)): _spread(cell, rows)
            for label, line in cells.items()
            for head, cell in line.items()
        }


def result_table(
    title: str, source: str, **settings: Any
) -> "Callable[[Callable[[Rows], Cells | DataFrame]], ResultTable]":
    """Return a decorator that makes a `ResultTable` of the function that returns its cells.

    Args:
        title: The title above the table.
        source: Place in the source, such as "Table 3.1".
        **settings: Other fields of `ResultTable`, such as `rows_are` and `note`.
    """
    return lambda cells: ResultTable(title=title, source=source, cells=cells, **settings)


class Spread(NamedTuple):
    """What a cell holds: a number or text, and its standard deviation over replications, NaN where it has none."""

    value: object
    deviation: float = math.nan


def _spread(cell: "Statistic | Series[float] | float | str | None", rows: Rows) -> Spread:
    if isinstance(cell, Statistic):
        series = cell(rows)
        if cell.replication.unit == "exact":
            return Spread(series.iloc[0] if len(series) else None)
        cell = series
    if isinstance(cell, Series):
        return Spread(float(cell.mean()), float(cell.std())) if len(cell) else Spread(None)
    return Spread(cell)


class Sheet(NamedTuple):
    """A table as text: `columns` are pairs (label, whose number it is), `lines` pairs (row label, cells)."""

    corner: str
    columns: list[tuple[str, str]]
    lines: list[tuple[str, list[str]]]


def sheet(table: ResultTable, rows: Rows) -> Sheet:
    """Our cells computed from `rows`, each beside the published one where there is one."""
    cells, printed = table.filled(rows), table.published
    labels = list(dict.fromkeys([*(label for label, _ in cells), *printed]))
    published_heads = (head for line in printed.values() for head in line)
    heads = list(dict.fromkeys([*(head for _, head in cells), *published_heads]))
    columns: list[tuple[str, str]] = []
    for head in heads:
        if any(head in line for line in printed.values()):
            columns.append((head, "published"))
        columns.append((head, "ours"))

    def text(label: str, head: str, whose: str) -> str:
        if whose == "published":
            return format_number(printed.get(label, {}).get(head), table.digits)
        value, deviation = cells.get((label, head), Spread(None))
        shown = format_number(value, table.digits)
        return shown if math.isnan(deviation) else f"{shown} ± {format_number(deviation, 2)}"

    lines = [(label, [text(label, *column) for column in columns]) for label in labels]
    return Sheet(table.rows_are, columns, lines)
