"""Tables for the terminal."""

from collections.abc import Iterable, Sequence
from typing import Literal

import rich.table
from rich.console import Console
from rich.text import Text


def console() -> Console:
    """Return the rich console on which the commands print.

    It has the width of the terminal, or 140 columns if the output is a file or pipe.
    """
    found = Console(soft_wrap=False, highlight=False)
    return found if found.is_terminal else Console(width=140, highlight=False)


def grid(
    title: str, heads: Iterable[str], lines: Iterable[Sequence[str | Text]], numbers: int = 1
) -> rich.table.Table:
    """Create a table for the terminal.

    Args:
        title: Title above the table.
        heads: Column headers.
        lines: Rows of the table, each with one cell per column.
        numbers: Index of the first right-aligned column (default: 1). Columns before it are left-aligned.
    """
    grid = rich.table.Table(title=Text(title), title_justify="left", title_style="bold", header_style="")
    for place, head in enumerate(heads):
        justify: Literal["left", "right"] = "right" if place >= numbers else "left"
        grid.add_column(Text(head, style="bold"), justify=justify, overflow="fold")
    for line in lines:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in line))
    return grid
