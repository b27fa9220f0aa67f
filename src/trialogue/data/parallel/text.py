"""Sentences and their translations, from a table or from two files with a line for each sentence."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from annotated_types import Len

from trialogue.errors import InputError, require_text
from trialogue.validation import Count, Different, validated

_BOM = "\ufeff"


@dataclass(frozen=True)
class ParallelText:
    """Pairs of a source sentence and its translation, without white space at either end.

    A pair of which one side is empty teaches nothing: it is left out, and `left_out` counts those. Raises `InputError`
    where there are more sentences of one kind than of the other, where no pair is left, and for what is no text.
    """

    sources: list[str]
    targets: list[str]
    left_out: int = 0

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            counts = f"{len(self.sources)} sources and {len(self.targets)} targets"
            raise InputError("targets", counts, "give one target for each source")
        for field, sentences in (("sources", self.sources), ("targets", self.targets)):
            for sentence in sentences:
                require_text(field, sentence)
        sides = [
            (source.strip(), target.strip())
            for source, target in zip(self.sources, self.targets, strict=True)
        ]
        pairs = [(source, target) for source, target in sides if source and target]
        if not pairs:
            raise InputError("text", "", "there is no pair of sentences in it: give at least one")
        object.__setattr__(self, "left_out", self.left_out + len(sides) - len(pairs))
        object.__setattr__(self, "sources", [source for source, _ in pairs])
        object.__setattr__(self, "targets", [target for _, target in pairs])

    def __len__(self) -> int:
        return len(self.sources)

    def chosen(self, places: Iterable[int]) -> "ParallelText":
        """The pairs at `places`, in that order."""
        held = list(places)
        return ParallelText([self.sources[place] for place in held], [self.targets[place] for place in held])

    @classmethod
    @validated
    def read(
        cls, path: str | os.PathLike[str], columns: Annotated[Different[Count], Len(2, 2)] = (1, 2)
    ) -> "ParallelText":
        """The pairs of a table with a pair in each line, its columns parted by tabs.

        `columns` are those of the source and of the target, counted from 1. Blank lines are passed over. Raises
        `InputError` for columns that the table lacks, for a line with another number of columns than the first (with
        its number), and for a file that is missing, no UTF-8, or without a pair.
        """
        source, target = columns
        rows = [(number, line.split("\t")) for number, line in enumerate(_lines(path), 1) if line.strip()]
        if not rows:
            raise InputError("text", os.fspath(path), "it is empty: name a file with sentences in it")
        width = len(rows[0][1])
        if max(source, target) > width:
            hint = f"line {rows[0][0]} of {os.fspath(path)} has {width} columns, which tabs part: name two of them"
            raise InputError("columns", columns, hint)
        for number, row in rows:
            if len(row) != width:
                first = f"line {rows[0][0]} has {width}"
                hint = f"line {number} has {len(row)} columns where {first}: give every line as many"
                raise InputError("text", os.fspath(path), hint)
        return _named(path, [row[source - 1] for _, row in rows], [row[target - 1] for _, row in rows])

    @classmethod
    def read_pair(
        cls, source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]
    ) -> "ParallelText":
        """The pairs of two files of which line i of the one translates line i of the other.

        Raises `InputError` where the files have unequal numbers of lines, both told, and for a file that is missing,
        no UTF-8, or without a sentence.
        """
        sources, targets = _lines(source_path), _lines(target_path)
        if len(sources) != len(targets):
            hint = f"it has {len(targets)} lines and {os.fspath(source_path)} has {len(sources)}: align the files"
            raise InputError("text", os.fspath(target_path), hint)
        return _named(source_path, sources, targets)


def _named(path: str | os.PathLike[str], sources: list[str], targets: list[str]) -> ParallelText:
    if not any(source.strip() and target.strip() for source, target in zip(sources, targets, strict=True)):
        raise InputError("text", os.fspath(path), "it is empty: name a file with sentences in it")
    return ParallelText(sources, targets)


def _lines(path: str | os.PathLike[str]) -> list[str]:
    """The lines of a file without their ends; only line feeds end one, so that aligned files stay aligned."""
    try:
        text = Path(path).read_bytes().decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        hint = f"byte {error.start} is no UTF-8: convert the file to UTF-8"
        raise InputError("text", os.fspath(path), hint) from error
    except OSError as error:
        hint = f"it cannot be read: {error.strerror or error}"
        raise InputError("text", os.fspath(path), hint) from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
