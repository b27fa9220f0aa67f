"""The documents of a text, and passages of them of about one length."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

from annotated_types import Ge

from trialogue.data.corpus.texts import Text
from trialogue.validation import validated

_MARK = re.compile(r"<\|[^|<>]+\|>\s*")
_TITLE = re.compile(r"\s*= (?!=).*(?<!=) =\s*")
_SHORT = 10


class Passage(NamedTuple):
    """A text, and the number of the document that it is of."""

    document: int
    text: str


def documents_of(text: Text) -> list[str]:
    """The documents of `text` that have anything in them.

    One ends at an end of document or of file, at a line that is a mark such as `<|doc 12|>`, and before a title of
    WikiText (` = Title = `). A text without any of these is read by paragraphs, which blank lines part.
    """
    lines = [piece for _, pieces in text.pieces() for piece in pieces]
    found = list(_parts(lines, _MARK.fullmatch, _TITLE.fullmatch))
    if len(found) > 1:
        return found
    return list(_parts(lines, lambda line: not line.strip() or _MARK.fullmatch(line)))


@validated
def passages_of(documents: Sequence[str], words: Annotated[int, Ge(_SHORT)]) -> list[Passage]:
    """`documents` cut at ends of lines, or of words in longer lines, into passages of `words` words, and a rest each.

    A rest of fewer than 10 words is left out. Raises `InputError` for `words` below that.
    """
    found: list[Passage] = []
    for number, document in enumerate(documents):
        held: list[str] = []
        for line in document.splitlines():
            parts = line.split()
            if held and len(held) + len(parts) > words:
                found.append(Passage(number, " ".join(held)))
                held = []
            held += parts
            while len(held) > words:
                found.append(Passage(number, " ".join(held[:words])))
                held = held[words:]
        if len(held) >= _SHORT:
            found.append(Passage(number, " ".join(held)))
    return [passage for passage in found if len(passage.text.split()) >= _SHORT]


def _parts(
    lines: Sequence[str], ends: Callable[[str], object], begins: Callable[[str], object] = lambda _: False
) -> Iterator[str]:
    """The texts between lines that end one, and from those on that begin one."""
    held: list[str] = []
    for line in lines:
        over, anew = bool(ends(line)), bool(begins(line))
        if (over or anew) and "".join(held).strip():
            yield "".join(held)
        if over or anew:
            held = []
        if not over:
            held.append(line)
    if "".join(held).strip():
        yield "".join(held)
