"""Splitting of a text into documents, and into passages of about equal length."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

from annotated_types import Ge

from trialogue.data.corpus.texts import Text
from trialogue.validation import validated

_MARK = re.compile(r"<\|[^|<>]+\|>\s*")
_TITLE = re.compile(r"\s*= (?!=).*(?<!=) =\s*")
_MIN_WORDS = 10


class Passage(NamedTuple):
    """Part of a document of limited length.

    Attributes:
        document: Index of the document.
        text: Text of the passage.
    """

    document: int
    text: str


def split_documents(text: Text) -> list[str]:
    """Split a text into documents.

    A document ends at the end of a file, at a line with a marker, and before a WikiText title (` = Title = `). Markers
    are, for example, `<|endoftext|>` or `<|doc 12|>`. If the text has none of these, each paragraph is a document.

    Args:
        text: Text to split.

    Returns:
        Nonempty documents in the order of the text.
    """
    lines = [piece for _, pieces in text.pieces() for piece in pieces]
    documents = list(_split_lines(lines, _MARK.fullmatch, _TITLE.fullmatch))
    if len(documents) > 1:
        return documents
    return list(_split_lines(lines, lambda line: not line.strip() or _MARK.fullmatch(line)))


@validated
def split_passages(documents: Sequence[str], words: Annotated[int, Ge(_MIN_WORDS)]) -> list[Passage]:
    """Split documents into passages of limited length.

    A passage ends at a line end. Only lines that are longer than a passage are split between words. Passages of fewer
    than 10 words are dropped.

    Args:
        documents: Texts of the documents.
        words: Maximum number of words of a passage, at least 10.

    Returns:
        Passages in the order of the documents.
    """
    passages: list[Passage] = []
    for number, document in enumerate(documents):
        current: list[str] = []
        for line in document.splitlines():
            line_words = line.split()
            if current and len(current) + len(line_words) > words:
                passages.append(Passage(number, " ".join(current)))
                current = []
            current += line_words
            while len(current) > words:
                passages.append(Passage(number, " ".join(current[:words])))
                current = current[words:]
        if len(current) >= _MIN_WORDS:
            passages.append(Passage(number, " ".join(current)))
    return [passage for passage in passages if len(passage.text.split()) >= _MIN_WORDS]


def _split_lines(
    lines: Sequence[str],
    is_separator: Callable[[str], object],
    is_title: Callable[[str], object] = lambda _: False,
) -> Iterator[str]:
    """Generate the nonblank texts between separator lines. A title line starts a new text and belongs to it."""
    current: list[str] = []
    for line in lines:
        ends, starts = bool(is_separator(line)), bool(is_title(line))
        if (ends or starts) and "".join(current).strip():
            yield "".join(current)
        if ends or starts:
            current = []
        if not ends:
            current.append(line)
    if "".join(current).strip():
        yield "".join(current)
