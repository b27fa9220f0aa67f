"""Text that appears while it grows, and is taken back where a sampler goes back."""

import shutil
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple, TextIO

from rich.cells import cell_len

# A model may write anything: what would steer the terminal is shown as a picture of itself.
_CONTROLS = {code: chr(0x2400 + code) for code in range(32)} | dict.fromkeys(range(127, 160), "�")
_PRINTABLE = str.maketrans(_CONTROLS | {ord("\t"): "    ", ord("\n"): "\n"})


def printable(text: str) -> str:
    """`text` as it can be shown on a terminal."""
    return text.translate(_PRINTABLE)


class LiveText:
    """Shows a text that changes on the terminal `stream`; elsewhere it shows nothing before the end.

    Where the text grows, what is new is written. Where it was taken back, the terminal lines since the change are
    written anew; where they have left the screen, a mark says so and the last line is written again.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._shown = stream, ""
        self._terminal = stream.isatty()

    def show(self, text: str) -> None:
        """The text is now `text`."""
        text = printable(text)
        if not self._terminal or text == self._shown:
            return
        if text.startswith(self._shown):
            self._stream.write(text[len(self._shown) :])
        else:
            self._rewrite(text)
        self._stream.flush()
        self._shown = text

    def end(self, text: str) -> None:
        """The text is `text`, and final."""
        if self._terminal:
            self.show(text)
            self._stream.write("\n")
        else:
            self._stream.write(text + "\n")
        self._stream.flush()
        self._shown = ""

    def _rewrite(self, text: str) -> None:
        size = shutil.get_terminal_size()
        begin = _common_lines(text, self._shown)
        rows = sum(_rows(line, size.columns) for line in self._shown[begin:].split("\n"))
        if rows > size.lines:
            last = text.rfind("\n") + 1
            self._stream.write(f"\n↶\n{text[last:]}")
            return
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        self._stream.write(f"\r{up}\x1b[J{text[begin:]}")


def _ignore(line: str) -> None:
    """Show nothing."""


class Feedback(NamedTuple):
    """How a run reports to its user; by default not at all.

    `live` shows the text of the first sample while it grows, `progress` shows a progress bar, `report` is called with
    each long step before the first sample, and `warn` with each warning.
    """

    live: LiveText | None = None
    progress: bool = False
    report: Callable[[str], None] = _ignore
    warn: Callable[[str], None] = _ignore


def _common_lines(first: str, second: str) -> int:
    """Characters of the whole lines that two texts begin with alike."""
    pairs = zip(first.split("\n")[:-1], second.split("\n")[:-1], strict=False)
    return sum(len(line) + 1 for line, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _rows(line: str, columns: int) -> int:
    """Rows that a line takes on a terminal of `columns` columns: one that just fills a row does not begin another."""
    rows, column = 1, 0
    for character in line:
        width = cell_len(character)
        if column + width > columns:
            rows, column = rows + 1, 0
        column += width
    return rows
