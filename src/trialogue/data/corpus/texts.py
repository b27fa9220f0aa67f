"""Texts that are read in pieces, from any position on: local files, with a part of them for tests.

A piece is a line with its end, or as much of a very long one as `LONGEST` bytes hold, so that no text is too large.
Documents end with `END`, which is a piece of its own.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from trialogue.errors import InputError
from trialogue.storage import sha256_of
from trialogue.validation import Probability, check

END = "<|endoftext|>"
"""Ends a document: written so in a text, it is read as the token that does."""
LONGEST = 2**16
"""Bytes of the longest piece."""
_BOM = b"\xef\xbb\xbf"
_AROUND_END = re.compile(f"({re.escape(END)})")


class Text(ABC):
    """A text that can be read from any of the positions that reading it tells."""

    size: int
    """The last position; the first is 0"""

    @property
    @abstractmethod
    def identity(self) -> Any:
        """What tells this text from another one, as JSON."""

    @abstractmethod
    def pieces(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Pieces from the position `start` on, some at a time, each time with the position behind them.

        Raises `InputError` for what cannot be read.
        """


class Span(NamedTuple):
    """Bytes `begin` to `end` of a file of `size` bytes, whose sha256 sum is `digest`."""

    path: Path
    digest: str
    begin: int
    end: int
    size: int


class LocalText(Text):
    """The text of `spans`, one after another; the end of a file ends a document. Positions are bytes."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans
        self.size = sum(span.end - span.begin for span in spans)

    @property
    def identity(self) -> Any:
        """The sums of the files, and the bytes of each."""
        return [(span.digest, span.begin, span.end) for span in self.spans]

    def pieces(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Pieces of one line at a time; raises `InputError` for what is no UTF-8, or shrinks while it is read."""
        before = 0
        for span in self.spans:
            length = span.end - span.begin
            if start < before + length:
                for place, pieces in _lines(span, span.begin + max(0, start - before)):
                    yield before + place - span.begin, pieces
            before += length


def pieces_of(line: str) -> list[str]:
    """The pieces of a line: ends of documents, and what stands between; the line of an end is that of the document."""
    pieces = [piece for piece in _AROUND_END.split(line) if piece]
    if len(pieces) > 1 and pieces[-2] == END and not pieces[-1].strip("\r\n"):
        pieces.pop()
    return pieces


def files_of(path: str | PathLike[str]) -> list[Path]:
    """The text file `path`, or the .txt files in the folder and below it, by name.

    Raises `InputError` where there is no such file, none in the folder, or no text in them.
    """
    place = Path(path)
    if place.is_dir():
        files = sorted(file for file in place.rglob("*.txt") if file.is_file())
        if not files:
            raise InputError(
                "text", str(path), "the folder holds no .txt files: name a file, or another folder"
            )
    elif place.is_file():
        files = [place]
    else:
        raise InputError("text", str(path), "there is no such file or folder")
    if not any(file.stat().st_size for file in files):
        raise InputError("text", str(path), "it is empty: name a file with text in it")
    return files


def local_text(path: str | PathLike[str]) -> LocalText:
    """The whole text of the file or folder `path`; raises `InputError` as `files_of` does, and for unreadable files."""
    return LocalText([_whole(file) for file in files_of(path)])


def split_text(path: str | PathLike[str], test_share: float) -> tuple[LocalText, LocalText]:
    """The text of `path` in two: the last `test_share` of its bytes, from where a line or word begins, is for tests.

    Raises `InputError` as `local_text` does, and for a share that is not above 0 and below 1.
    """
    share = check("test_share", test_share, Probability)
    whole = local_text(path)
    left = round((1 - share) * whole.size)
    train: list[Span] = []
    test: list[Span] = []
    for span in whole.spans:
        cut = min(max(left, 0), span.size)
        if 0 < cut < span.size:
            cut = _beginning(span, cut)
        if cut > 0:
            train.append(span._replace(end=cut))
        if cut < span.size:
            test.append(span._replace(begin=cut))
        left -= span.size
    return LocalText(train), LocalText(test)


def _whole(file: Path) -> Span:
    try:
        size = file.stat().st_size
        return Span(file, sha256_of(file), 0, size, size)
    except OSError as error:
        raise InputError("text", str(file), f"it cannot be read: {error.strerror or error}") from error


def _beginning(span: Span, place: int) -> int:
    """Where the first line from `place` on begins, or the first word, or character, where no line does soon."""
    with span.path.open("rb") as file:
        file.seek(place)
        ahead = file.read(LONGEST)
    line, word = ahead.find(b"\n"), ahead.find(b" ")
    if 0 <= line < span.end - place - 1:
        return place + line + 1
    return place + word if word > 0 else place + _whole_characters(ahead[:4])


def _whole_characters(first: bytes) -> int:
    """How many bytes of a character that has begun before come first."""
    return next((at for at, byte in enumerate(first) if byte & 0xC0 != 0x80), 0)


def _lines(span: Span, place: int) -> Iterator[tuple[int, list[str]]]:
    """The lines of `span` from the byte `place` of the file on, each with the place behind it."""
    with span.path.open("rb") as file:
        file.seek(place)
        while place < span.end:
            line = file.readline(min(LONGEST, span.end - place))
            if not line:
                raise InputError("text", str(span.path), "it has become shorter while it was read")
            if len(line) == LONGEST and not line.endswith(b"\n"):
                line = line[: _last_word(line)]
                file.seek(place + len(line))
            try:
                pieces = pieces_of(line.removeprefix(_BOM if place == 0 else b"").decode())
            except UnicodeDecodeError as error:
                hint = f"byte {place + error.start} is no UTF-8: convert the file to UTF-8"
                raise InputError("text", str(span.path), hint) from error
            place += len(line)
            if place == span.size and pieces[-1:] != [END]:
                pieces.append(END)
            yield place, pieces


def _last_word(line: bytes) -> int:
    """Where the last word of a piece of a line begins, the space before it with it; or its last character."""
    word = line.rfind(b" ")
    if word > 0:
        return word
    ends = (at for at in range(len(line) - 1, len(line) - 5, -1) if line[at] & 0xC0 != 0x80)
    return next(ends, len(line))
