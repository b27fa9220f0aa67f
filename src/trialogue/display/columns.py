"""Layout of text tables that fit the width of the terminal without splitting words."""

import os
import re
import shutil
import textwrap
from collections.abc import Sequence

_BREAKS = re.compile(r"\s+|(?<=[^\W\d_]-)(?=[^\W\d_])")
"""Places where a line may end: spaces, and hyphens between letters."""

_LABEL = 24
"""Width down to which the first column is not narrowed."""

PIPE_WIDTH = 140
"""Width of the output if it is not a terminal and the variable COLUMNS is not set."""


def output_width() -> int:
    """Return the width of the terminal, or of `COLUMNS` if set, or `PIPE_WIDTH`. It is at least 20."""
    found = shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
    if not os.environ.get("COLUMNS") and not os.isatty(1):
        found = PIPE_WIDTH
    return max(found, 20)


def wrap_words(text: str, width: int) -> list[str]:
    """Break text into lines at spaces and at hyphens between letters. Line breaks of the text are kept.

    Args:
        text: The text.
        width: Maximum length of a line. Only a longer word is split.
    """
    return [line for part in text.split("\n") for line in textwrap.wrap(part, max(width, 1)) or [""]]


def column_widths(lines: Sequence[Sequence[str]], available: int) -> list[int] | None:
    """Return the widths of columns that fit the available width without splitting a word.

    The widest columns are narrowed first.

    Args:
        lines: The cells of each row, including the headers.
        available: Total width of the cells, without borders.

    Returns:
        One width per column. None if the longest words do not fit.
    """
    columns = list(zip(*lines, strict=True))
    natural = [max(max(map(len, cell.split("\n"))) for cell in column) for column in columns]
    least = [max(max(map(len, _BREAKS.split(cell))) for cell in column) for column in columns]
    if len(natural) > 1:  # The labels of rows are kept readable.
        least[0] = max(least[0], min(natural[0], _LABEL))
    for cap in range(max(natural, default=0), 0, -1):
        widths = [max(low, min(full, cap)) for low, full in zip(least, natural, strict=True)]
        if sum(widths) <= available:
            return widths
    return None


def fitting_columns(
    lines: Sequence[Sequence[str]], width: int, border: int, outer: int
) -> list[tuple[list[int], list[int]]]:
    """Split a wide table into as few tables as possible that fit the width.

    Every table repeats the first column.

    Args:
        lines: The cells of each row, including the headers.
        width: Width of the output.
        border: Width of the borders of one column.
        outer: Width of the further borders of a table. Negative if its last column has no border.

    Returns:
        For each table, the indices of its columns and their widths.
    """
    tables: list[tuple[list[int], list[int]]] = []
    waiting = list(range(1, len(lines[0])))
    while waiting or not tables:
        for count in range(len(waiting), -1, -1):
            shown = [0, *waiting[:count]]
            available = width - border * len(shown) - outer
            widths = column_widths([[line[index] for index in shown] for line in lines], available)
            if widths is not None or count <= min(1, len(waiting)):
                break
        tables.append((shown, widths or [max(1, available // len(shown))] * len(shown)))
        waiting = waiting[len(shown) - 1 :]
    return tables


def text_table(lines: Sequence[Sequence[str]], width: int, numbers: int = 1) -> str:
    """Format a table without borders, for commands that start quickly.

    Args:
        lines: The cells of each row. The first row has the headers.
        width: Width of the output.
        numbers: Index of the first right-aligned column (default: 1).

    Returns:
        Lines of text of at most `width` characters.
    """
    tables = []
    for shown, widths in fitting_columns(lines, width, 2, -2):
        texts = []
        for line in lines:
            cells = [wrap_words(line[index], room) for index, room in zip(shown, widths, strict=True)]
            for height in range(max(map(len, cells))):
                texts.append(
                    "  ".join(
                        (part.rjust if index >= numbers else part.ljust)(room)
                        for index, room, cell in zip(shown, widths, cells, strict=True)
                        for part in [cell[height] if height < len(cell) else ""]
                    ).rstrip()
                )
        tables.append("\n".join(texts))
    return "\n\n".join(tables)
