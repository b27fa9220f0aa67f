"""Tables for the terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import rich.table
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from trialogue.display.columns import fitting_columns, output_width, wrap_words


def console(width: int | None = None) -> Console:
    """Return the rich console on which the commands print.

    Args:
        width: Width in columns. By default, the width of the terminal, or of the variable COLUMNS, or 140 columns if
            the output is a file or pipe.
    """
    return Console(width=width or output_width(), highlight=False)


@dataclass(frozen=True)
class Grid:
    """A table for the terminal that is split into several tables if it is too wide.

    Args:
        title: Title above the table.
        heads: Column headers.
        lines: Rows of the table, each with one cell per column.
        numbers: Index of the first right-aligned column. Columns before it are left-aligned.
    """

    title: str
    heads: Sequence[str]
    lines: Sequence[Sequence[str | Text]]
    numbers: int = 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, in parts if it is too wide for the console."""
        texts = [[str(cell) for cell in line] for line in (self.heads, *self.lines)]
        title: Text | None = Text(self.title)
        for shown, widths in fitting_columns(texts, options.max_width, 3, 1):
            table = rich.table.Table(title=title, title_justify="left", title_style="bold", header_style="")
            for index, width in zip(shown, widths, strict=True):
                head = Text("\n".join(wrap_words(self.heads[index], width)), style="bold")
                table.add_column(head, justify="right" if index >= self.numbers else "left", min_width=width)
            for line in self.lines:
                table.add_row(
                    *(_cell(line[index], width) for index, width in zip(shown, widths, strict=True))
                )
            yield table
            title = None


def _cell(cell: str | Text, width: int) -> Text:
    style = cell.style if isinstance(cell, Text) else ""
    return (
        cell
        if isinstance(cell, Text) and cell.cell_len <= width
        else Text("\n".join(wrap_words(str(cell), width)), style)
    )


def grid(title: str, heads: Iterable[str], lines: Iterable[Sequence[str | Text]], numbers: int = 1) -> Grid:
    """Create a table for the terminal.

    Args:
        title: Title above the table.
        heads: Column headers.
        lines: Rows of the table, each with one cell per column.
        numbers: Index of the first right-aligned column (default: 1). Columns before it are left-aligned.
    """
    return Grid(title, list(heads), list(lines), numbers)
