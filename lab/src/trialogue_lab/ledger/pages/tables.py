"""Tables of measured numbers next to published numbers."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from pandas import DataFrame, Series

from trialogue.display.numbers import ABSENT, format_number
from trialogue_lab.ledger.claims.statistics import Statistic
from trialogue_lab.ledger.rows import NoRows, Rows

Cells = Mapping[str, Mapping[str, "Statistic | Series[float] | float | str | None"]]
"""Cells by row label, then by column label.

A statistic, or a series with one number per replication, is shown as mean ± standard deviation.
"""


@dataclass(frozen=True, kw_only=True)
class ResultTable:
    """A table of measured numbers, next to published numbers if there are any.

    Args:
        title: Title of the table.
        source: Place in the publication, for example "Table 3.1".
        cells: Nested dicts of cells by row label and column label, or a function that computes them (or a DataFrame)
            from the measurements.
        published: The published numbers or words, by row label and column label.
        row_heading: Heading of the first column (default: empty).
        note: Note below the table (default: empty).
        digits: Number of significant digits (default: 3).
    """

    title: str
    source: str
    cells: "Cells | Callable[[Rows], Cells | DataFrame]"
    published: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    row_heading: str = ""
    note: str = ""
    digits: int = 3

    def evaluate(self, rows: Rows) -> dict[tuple[str, str], "CellValue"]:
        """Return the value of every cell, by row label and column label.

        The dict is empty if required measurements are missing.

        Args:
            rows: Measurements of a run, one DataFrame per kind of measurement.
        """
        if not callable(self.cells):
            return _evaluate_cells(self.cells, rows)
        # Several pages show the same table.
        if self.cells not in rows.computed:
            try:
                rows.computed[self.cells] = _evaluate_cells(self.cells(rows), rows)
            except NoRows:
                rows.computed[self.cells] = {}
        found: dict[tuple[str, str], CellValue] = rows.computed[self.cells]
        return found


def result_table(
    title: str, source: str, **settings: Any
) -> "Callable[[Callable[[Rows], Cells | DataFrame]], ResultTable]":
    """Return a decorator that turns a function of the measurements into a `ResultTable`.

    Args:
        title: Title of the table.
        source: Place in the publication, for example "Table 3.1".
        **settings: Other fields of `ResultTable`, for example `row_heading` and `note`.
    """
    return lambda cells: ResultTable(title=title, source=source, cells=cells, **settings)


class CellValue(NamedTuple):
    """Value of a table cell.

    Attributes:
        value: A number or a text.
        deviation: Standard deviation over replications, NaN if there are none.
    """

    value: object
    deviation: float = math.nan


def _evaluate_cells(cells: "Cells | DataFrame", rows: Rows) -> dict[tuple[str, str], CellValue]:
    if isinstance(cells, DataFrame):
        cells = cast(Cells, cells.to_dict("index"))
    return {
        (str(label), str(head)): _evaluate(cell, rows)
        for label, line in cells.items()
        for head, cell in line.items()
    }


def _evaluate(cell: "Statistic | Series[float] | float | str | None", rows: Rows) -> CellValue:
    if isinstance(cell, Statistic):
        series = cell(rows)
        if cell.replication.unit == "exact":
            return CellValue(series.iloc[0] if len(series) else None)
        cell = series
    if isinstance(cell, Series):
        return CellValue(float(cell.mean()), float(cell.std())) if len(cell) else CellValue(None)
    return CellValue(cell)


class Sheet(NamedTuple):
    """A table of texts, ready to be printed.

    Attributes:
        corner: Heading of the first column.
        columns: Heading of each other column, and whether its numbers are "published" or measured here ("ours").
        lines: Label of each row, and its cells.
    """

    corner: str
    columns: list[tuple[str, str]]
    lines: list[tuple[str, list[str]]]

    @property
    def legend(self) -> str:
        """Meaning of the dash and of "±", if cells have them. May be empty."""
        origins = {
            origin
            for _, cells in self.lines
            for (_, origin), cell in zip(self.columns, cells, strict=True)
            if cell == ABSENT
        }
        meanings = {
            "ours": "not measured by this run",
            "published": "no number in the publication",
        }
        found = [meaning for origin, meaning in meanings.items() if origin in origins]
        texts = [f"{ABSENT}: {', or '.join(found)}"] if found else []
        if any(" ± " in cell for _, cells in self.lines for cell in cells):
            texts.append("±: standard deviation over the repetitions")
        return "; ".join(texts)


def sheet(table: ResultTable, rows: Rows) -> Sheet:
    """Return a table as text, with measured numbers next to published numbers.

    Args:
        table: The table.
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    cells, printed = table.evaluate(rows), table.published
    labels = list(dict.fromkeys([*(label for label, _ in cells), *printed]))
    published_heads = (head for line in printed.values() for head in line)
    heads = list(dict.fromkeys([*(head for _, head in cells), *published_heads]))
    columns: list[tuple[str, str]] = []
    for head in heads:
        if any(head in line for line in printed.values()):
            columns.append((head, "published"))
        columns.append((head, "ours"))

    def text(label: str, head: str, origin: str) -> str:
        if origin == "published":
            return format_number(printed.get(label, {}).get(head), table.digits)
        value, deviation = cells.get((label, head), CellValue(None))
        shown = format_number(value, table.digits)
        return shown if math.isnan(deviation) else f"{shown} ± {format_number(deviation, 2)}"

    lines = [(label, [text(label, *column) for column in columns]) for label in labels]
    return Sheet(table.row_heading, columns, lines)
