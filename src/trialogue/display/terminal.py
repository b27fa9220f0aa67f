"""Tables for the terminal."""

from collections.abc import Iterable, Sequence
from typing import Literal

import rich.table
from rich.console import Console
from rich.text import Text


def console() -> Console:
    """Return the console of the commands, with the width of the terminal or 140 columns for a file or pipe."""
    found = Console(soft_wrap=False, highlight=False)
    return found if found.is_terminal else Console(width=140, highlight=False)


def grid(
    title: str, heads: Iterable[str], lines: Iterable[Sequence[str | Text]], numbers: int = 1
) -> rich.table.Table:
    """Create a table.

    Args:
        title: Title of the table.
        heads: Column headers.
        lines: Cells of each row.
        numbers: Index of the first right-aligned column.
    """
    grid = rich.table.Table(title=Text(title), title_justify="left", title_style="bold", header_style="")
    for place, head in enumerate(heads):
        justify: Literal["left", "right"] = "right" if place >= numbers else "left"
        grid.add_column(Text(head, style="bold"), justify=justify, overflow="fold")
    for line in lines:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in line))
    return grid
