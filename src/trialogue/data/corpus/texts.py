"""Texts of any size that are read piece by piece, from any position.

A piece is a line with its line break, or a part of at most `LONGEST` bytes of a longer line. The end-of-document marker
`END` is a separate piece.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from trialogue.errors import InputError
from trialogue.storage import compute_sha256
from trialogue.validation import Probability, check

END = "<|endoftext|>"
"""Marker of the end of a document, which becomes a special token."""
LONGEST = 2**16
"""Maximum number of bytes of a piece."""
_BOM = b"\xef\xbb\xbf"
_AROUND_END = re.compile(f"({re.escape(END)})")


class Text(ABC):
    """Text that is read in pieces.

    A piece is a line with its line break, a part of a long line, or the end-of-document marker `END`. Reading can start
    at any position that `pieces` yields. The unit of positions depends on the subclass.
    """

    size: int
    """Last position. The first position is 0."""

    @property
    @abstractmethod
    def identity(self) -> Any:
        """JSON value that differs between different texts."""

    @abstractmethod
    def pieces(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Generate lists of consecutive pieces of the text.

        Args:
            start: Position of the first piece, 0 or a position from an earlier call.

        Yields:
            Position after the pieces, and the pieces.

        Raises:
            InputError: If the text cannot be read.
        """


class Span(NamedTuple):
    """Range of bytes of a file.

    Attributes:
        path: Path of the file.
        digest: SHA-256 hash of the file.
        begin: First byte.
        end: Last byte, exclusive.
        size: Number of bytes of the file.
    """

    path: Path
    digest: str
    begin: int
    end: int
    size: int


class LocalText(Text):
    """Text stored in local files, as consecutive ranges of bytes. Positions in the text are bytes.

    The end of a file ends a document.

    Args:
        spans: Ranges of bytes in the order of the text.
    """

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans
        self.size = sum(span.end - span.begin for span in spans)

    @property
    def identity(self) -> Any:
        """Hash of the file and range of bytes of each span."""
        return [(span.digest, span.begin, span.end) for span in self.spans]

    def pieces(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Generate the pieces of the text, one line at a time.

        A piece is a line with its line break, a part of a long line, or the end-of-document marker `END`.

        Args:
            start: Position of the first byte, 0 or a position from an earlier call.

        Yields:
            Position after the line, and its pieces.

        Raises:
            InputError: If the text is not UTF-8, or a file becomes shorter while it is read.
        """
        before = 0
        for span in self.spans:
            length = span.end - span.begin
            if start < before + length:
                for position, pieces in _lines(span, span.begin + max(0, start - before)):
                    yield before + position - span.begin, pieces
            before += length


def split_at_markers(line: str) -> list[str]:
    """Split a line at the end-of-document markers `END`.

    Args:
        line: Line with or without a line break.

    Returns:
        The markers and the nonempty texts between them. A line break after a final marker is dropped.
    """
    pieces = [piece for piece in _AROUND_END.split(line) if piece]
    if len(pieces) > 1 and pieces[-2] == END and not pieces[-1].strip("\r\n"):
        pieces.pop()
    return pieces


def find_text_files(path: str | PathLike[str]) -> list[Path]:
    """Find the text files of a path.

    Args:
        path: File, or folder of .txt files.

    Returns:
        The file itself, or all .txt files in the folder and its subfolders, sorted by path.

    Raises:
        InputError: If there is no such file or folder, the folder has no .txt files, or all files are empty.
    """
    location = Path(path)
    if location.is_dir():
        files = sorted(file for file in location.rglob("*.txt") if file.is_file())
        if not files:
            raise InputError("text", str(path), "give a file, or a folder that contains .txt files")
    elif location.is_file():
        files = [location]
    else:
        raise InputError("text", str(path), "give an existing file or folder")
    if not any(file.stat().st_size for file in files):
        raise InputError("text", str(path), "give a file that is not empty")
    return files


def open_local_text(path: str | PathLike[str]) -> LocalText:
    """Open the text of a file, or of all .txt files of a folder in the order of their paths.

    Args:
        path: File, or folder of .txt files.

    Raises:
        InputError: If there is no text, or a file cannot be read.
    """
    return LocalText([_file_span(file) for file in find_text_files(path)])


def split_local_text(path: str | PathLike[str], test_share: float) -> tuple[LocalText, LocalText]:
    """Split the text of a file or folder into a training text and a test text.

    Args:
        path: File, or folder of .txt files.
        test_share: Fraction of the bytes in the test text, above 0 and below 1. The test text is the end of the
            text. It starts at the next line or word after this position.

    Returns:
        Training text and test text.

    Raises:
        InputError: If the share is out of range, there is no text, or a file cannot be read.
    """
    share = check("test_share", test_share, Probability)
    text = open_local_text(path)
    remaining = round((1 - share) * text.size)
    train: list[Span] = []
    test: list[Span] = []
    for span in text.spans:
        cut = min(max(remaining, 0), span.size)
        if 0 < cut < span.size:
            cut = _next_boundary(span, cut)
        if cut > 0:
            train.append(span._replace(end=cut))
        if cut < span.size:
            test.append(span._replace(begin=cut))
        remaining -= span.size
    return LocalText(train), LocalText(test)


def _file_span(file: Path) -> Span:
    try:
        size = file.stat().st_size
        return Span(file, compute_sha256(file), 0, size, size)
    except OSError as error:
        hint = f"check that the file can be read ({error.strerror or error})"
        raise InputError("text", str(file), hint) from error


def _next_boundary(span: Span, position: int) -> int:
    """Return the first position after `position` at which a line starts.

    If no line starts within `LONGEST` bytes, it is the start of the next word or character.
    """
    with span.path.open("rb") as file:
        file.seek(position)
        ahead = file.read(LONGEST)
    line, word = ahead.find(b"\n"), ahead.find(b" ")
    if 0 <= line < span.end - position - 1:
        return position + line + 1
    return position + word if word > 0 else position + _continuation_bytes(ahead[:4])


def _continuation_bytes(data: bytes) -> int:
    """Return the number of UTF-8 continuation bytes at the start of `data`."""
    return next((index for index, byte in enumerate(data) if byte & 0xC0 != 0x80), 0)


def _lines(span: Span, position: int) -> Iterator[tuple[int, list[str]]]:
    """Generate the pieces of the lines of `span` from a byte position, each with the position after it."""
    with span.path.open("rb") as file:
        file.seek(position)
        while position < span.end:
            line = file.readline(min(LONGEST, span.end - position))
            if not line:
                hint = "do not change the file while it is read, because it became shorter"
                raise InputError("text", str(span.path), hint)
            if len(line) == LONGEST and not line.endswith(b"\n"):
                line = line[: _last_boundary(line)]
                file.seek(position + len(line))
            try:
                pieces = split_at_markers(line.removeprefix(_BOM if position == 0 else b"").decode())
            except UnicodeDecodeError as error:
                hint = f"convert the file to UTF-8, because byte {position + error.start} is invalid"
                raise InputError("text", str(span.path), hint) from error
            position += len(line)
            if position == span.size and pieces[-1:] != [END]:
                pieces.append(END)
            yield position, pieces


def _last_boundary(line: bytes) -> int:
    """Return the position of the last space in `line`, or the start of the last character if there is no space."""
    word = line.rfind(b" ")
    if word > 0:
        return word
    starts = (index for index in range(len(line) - 1, len(line) - 5, -1) if line[index] & 0xC0 != 0x80)
    return next(starts, len(line))
