"""Tables of our numbers beside the published ones: one object, shown by the terminal and by the report."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import NamedTuple

from pandas import DataFrame

ABSENT = "–"


@dataclass(frozen=True, kw_only=True)
class Table:
    """A published table and how our rows fill it.

    `ours(rows)` returns our cells; its index and columns carry the same labels as `published`, a mapping of
    row label to column label to the number (or the text) in print. `deviation(rows)` has the shape of `ours`
    and holds standard deviations over replications. `digits` are significant digits, `rows_are` heads the
    first column.
    """

    title: str
    source: str
    ours: Callable[[DataFrame], DataFrame]
    published: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    deviation: Callable[[DataFrame], DataFrame] | None = None
    rows_are: str = ""
    note: str = ""
    digits: int = 3

    def cells(self, rows: DataFrame) -> dict[tuple[str, str], object]:
        """Our cells by the labels of their row and column."""
        return _cells(self.ours(rows))

    def deviations(self, rows: DataFrame) -> dict[tuple[str, str], object]:
        """Standard deviations of our cells, by the labels of their row and column."""
        return _cells(self.deviation(rows)) if self.deviation else {}


def _cells(frame: DataFrame) -> dict[tuple[str, str], object]:
    return {
        (str(label), str(head)): frame.iat[i, j]
        for i, label in enumerate(frame.index)
        for j, head in enumerate(frame.columns)
    }


class Sheet(NamedTuple):
    """A table as text: `columns` are pairs (label, whose number it is), `lines` pairs (row label, cells)."""

    corner: str
    columns: list[tuple[str, str]]
    lines: list[tuple[str, list[str]]]


def format_number(value: object, digits: int = 3) -> str:
    """A number to `digits` significant digits, integers in full; text as it is, what is absent as a dash."""
    if value is None or (isinstance(value, Real) and math.isnan(value)):
        return ABSENT
    if isinstance(value, str | bool | Integral) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if number == 0:
        return "0"
    # Rounding first: 0.9996 to three digits is 1.00, which has one digit more before the point.
    exponent = int(f"{number:.{digits - 1}e}".partition("e")[2])
    if not -5 < exponent < 7:
        return f"{number:.{digits - 1}e}"
    return f"{number:.{max(0, digits - 1 - exponent)}f}"


def sheet(table: Table, rows: DataFrame) -> Sheet:
    """Our cells computed from `rows`, each beside the published one where there is one."""
    cells, spreads = table.cells(rows), table.deviations(rows)
    printed = table.published
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
        shown = format_number(cells.get((label, head)), table.digits)
        spread = spreads.get((label, head))
        if not isinstance(spread, Real) or math.isnan(spread):
            return shown
        return f"{shown} ± {format_number(spread, 2)}"

    lines = [(label, [text(label, *column) for column in columns]) for label in labels]
    return Sheet(table.rows_are, columns, lines)
