"""Display of a text on a terminal while it is generated."""

import shutil
from collections.abc import Callable
from itertools import takewhile
from typing import NamedTuple, TextIO

from rich.cells import cell_len

# Control characters in model output could change the terminal state, so their Unicode symbols are shown.
_CONTROLS = {code: chr(0x2400 + code) for code in range(32)} | dict.fromkeys(range(127, 160), "�")
_PRINTABLE = str.maketrans(_CONTROLS | {ord("\t"): "    ", ord("\n"): "\n"})


def printable(text: str) -> str:
    """Replace control characters by printable symbols, so that model output cannot change the terminal state.

    Args:
        text: Text to display.
    """
    return text.translate(_PRINTABLE)


class LiveText:
    """Displays a text that grows, and that may also change before its end.

    On a terminal, new text is appended. If an earlier part of the text changes, all terminal lines from the change
    onwards are rewritten. If these lines have scrolled off the screen, a mark "↶" is printed and the last line is
    repeated. On other streams, only the final text is written.

    Args:
        stream: Output stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._shown = stream, ""
        self._terminal = stream.isatty()

    def show(self, text: str) -> None:
        """Replace the displayed text. Nothing is displayed if the stream is not a terminal.

        Args:
            text: The complete new text.
        """
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
        """Write the final text followed by a line break, and start with an empty text.

        Args:
            text: The complete final text.
        """
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
    """Discard the line."""


class Feedback(NamedTuple):
    """Functions and settings for the progress output of a run. By default nothing is shown.

    Attributes:
        live: Display for the text of the first sample while it grows, or None.
        progress: Whether to show a progress bar.
        report: Function called with a message before each long step that precedes the first sample.
        warn: Function called with the text of each warning.
    """

    live: LiveText | None = None
    progress: bool = False
    report: Callable[[str], None] = _ignore
    warn: Callable[[str], None] = _ignore


def _common_lines(first: str, second: str) -> int:
    """Return the number of characters in the complete lines with which both texts begin."""
    pairs = zip(first.split("\n")[:-1], second.split("\n")[:-1], strict=False)
    return sum(len(line) + 1 for line, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _rows(line: str, columns: int) -> int:
    """Return the number of terminal rows that a line occupies."""
    rows, column = 1, 0
    for character in line:
        width = cell_len(character)
        if column + width > columns:
            rows, column = rows + 1, 0
        column += width
    return rows
