"""Sentences with their translations, read from a table or from two aligned files."""

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
    """Pairs of a source sentence and its translation.

    White space at both ends of a sentence is removed. A pair is dropped if one of its sentences is empty.

    Args:
        sources: Source sentences.
        targets: Translations, in the order of the sources.
        left_out: Number of pairs dropped earlier (default: 0). The attribute also counts the pairs dropped now.

    Raises:
        InputError: If the numbers of sentences differ, a sentence is not a text, or no pair remains.
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
            raise InputError("text", "", "give at least one pair of sentences that are not empty")
        object.__setattr__(self, "left_out", self.left_out + len(sides) - len(pairs))
        object.__setattr__(self, "sources", [source for source, _ in pairs])
        object.__setattr__(self, "targets", [target for _, target in pairs])

    def __len__(self) -> int:
        return len(self.sources)

    def select(self, indices: Iterable[int]) -> "ParallelText":
        """Return the pairs at some positions.

        Args:
            indices: Indices of the pairs, in the order of the result.
        """
        selected = list(indices)
        return ParallelText([self.sources[i] for i in selected], [self.targets[i] for i in selected])

    @classmethod
    @validated
    def read(
        cls, path: str | os.PathLike[str], columns: Annotated[Different[Count], Len(2, 2)] = (1, 2)
    ) -> "ParallelText":
        """Read a tab-separated table with one pair per line. Blank lines are ignored.

        Args:
            path: UTF-8 file.
            columns: Columns of the source and of the target, counted from 1 (default: the first two).

        Returns:
            The pairs in the order of the lines.

        Raises:
            InputError: If a column does not exist, a line has another number of columns than the first, the file cannot
                be read, or there is no pair.
        """
        source, target = columns
        rows = [(number, line.split("\t")) for number, line in enumerate(_lines(path), 1) if line.strip()]
        if not rows:
            raise InputError("text", os.fspath(path), "give a file that contains sentences")
        width = len(rows[0][1])
        if max(source, target) > width:
            hint = f"use columns up to {width}, the number of tab-separated columns of {os.fspath(path)}"
            raise InputError("columns", columns, hint)
        for number, row in rows:
            if len(row) != width:
                hint = (
                    f"give every line the same number of columns: line {number} has {len(row)}, but "
                    f"line {rows[0][0]} has {width}"
                )
                raise InputError("text", os.fspath(path), hint)
        return _from_file(path, [row[source - 1] for _, row in rows], [row[target - 1] for _, row in rows])

    @classmethod
    def read_pair(
        cls, source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]
    ) -> "ParallelText":
        """Read two aligned files, in which line i of one file is the translation of line i of the other.

        Args:
            source_path: UTF-8 file of source sentences.
            target_path: UTF-8 file of translations.

        Returns:
            The pairs in the order of the lines.

        Raises:
            InputError: If the numbers of lines differ, a file cannot be read, or there is no pair.
        """
        sources, targets = _lines(source_path), _lines(target_path)
        if len(sources) != len(targets):
            source = f"{os.fspath(source_path)} has {len(sources)}"
            hint = f"align the files: this file has {len(targets)} lines, but {source}"
            raise InputError("text", os.fspath(target_path), hint)
        return _from_file(source_path, sources, targets)


def _from_file(path: str | os.PathLike[str], sources: list[str], targets: list[str]) -> ParallelText:
    if not any(source.strip() and target.strip() for source, target in zip(sources, targets, strict=True)):
        raise InputError("text", os.fspath(path), "give a file that contains sentences")
    return ParallelText(sources, targets)


def _lines(path: str | os.PathLike[str]) -> list[str]:
    """Return the lines of a file. Only line feeds end a line, so that aligned files remain aligned."""
    try:
        text = Path(path).read_bytes().decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        hint = f"convert the file to UTF-8, because byte {error.start} is invalid"
        raise InputError("text", os.fspath(path), hint) from error
    except OSError as error:
        hint = f"check that the file can be read ({error.strerror or error})"
        raise InputError("text", os.fspath(path), hint) from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
