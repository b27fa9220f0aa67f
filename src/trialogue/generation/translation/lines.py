"""Lines in, lines out: one answer for every line, in order, whatever a line holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from trialogue.errors import InputError
from trialogue.generation.translation.model import TranslationModel
from trialogue.generation.translation.settings import Translating
from trialogue.samplers.translation.hypotheses import Translation
from trialogue.samplers.translation.writing import rescored

_POOL = 16
"""Batches that are read ahead, so that lines of a like length go together."""


class Answer(NamedTuple):
    """What came of line `number`, counted from 1."""

    number: int
    source: str
    texts: list[str]
    """Hypotheses, best first; none where the line was refused"""
    translation: Translation
    refused: str
    """Why it was not translated; empty where it was"""
    seconds: float
    """What the lines that were translated with it took, all of them"""

    @property
    def text(self) -> str:
        """The best hypothesis, in one line whatever marks end a line for its reader; empty where there is none."""
        return " ".join(self.texts[0].splitlines()) if self.texts else ""

    def record(self) -> dict[str, Any]:
        """The answer as JSON."""
        if self.refused:
            return {"line": self.number, "source": self.source, "translation": "", "error": self.refused}
        scored = zip(self.texts, self.translation.hypotheses, strict=True)
        return {
            "line": self.number,
            "source": self.source,
            "translation": self.text,
            "hypotheses": [
                {"text": text, "log_prob": each.log_prob, "score": each.score} for text, each in scored
            ],
            "passes": self.translation.passes,
            "seconds": self.seconds,
        }


class _Line(NamedTuple):
    number: int
    text: str
    tokens: list[int]
    """None where the line is refused, or blank"""
    refused: str


class LineTranslator:
    """Translates lines as `settings` say, with one network of `model`, or two where the twin ranks.

    A blank line has an empty translation. One of more tokens than the model reads is refused, or cut where `truncate`
    is set, and one with lone surrogates, as undecoded bytes leave them, is refused. Raises `InputError` for a network
    that the model lacks.
    """

    def __init__(self, model: TranslationModel, settings: Translating, *, truncate: bool = False) -> None:
        self._vocabulary, self._longest, self._truncate = model.vocabulary, model.max_length, truncate
        self._translate: Callable[[Sequence[Sequence[int]], Sequence[int]], list[Translation]]
        if settings.network == "twin":
            twin, search = model.twin(), settings.search
            self._translate = lambda sources, _: search.translate(twin, sources)
        else:
            refiner, beam = model.refiner(), settings.beam
            if settings.rescore and "twin" not in model.networks:
                raise InputError(
                    "rescore", True, "the model has no twin: train it with both networks, or leave it out"
                )
            ranking = model.twin() if settings.rescore else None
            if ranking and ranking.model.config.max_length < refiner.model.config.max_length:
                hint = f"the twin reads {ranking.model.config.max_length} tokens, fewer than the refiner: leave it out"
                raise InputError("rescore", True, hint)

            def refined(sources: Sequence[Sequence[int]], numbers: Sequence[int]) -> list[Translation]:
                found = beam.translate(refiner, sources, seed=settings.seed, numbers=numbers)
                return rescored(ranking, sources, found, beam.alpha) if ranking else found

            self._translate = refined

    def answers(self, lines: Iterable[str], batch: int = 1) -> Iterator[Answer]:
        """An answer for each of `lines`, in order; so many of a like length are translated together.

        With a batch of one line each is answered before the next one is read.
        """
        numbered = enumerate(lines, 1)
        ahead = 1 if batch == 1 else _POOL * batch
        while pool := list(islice(numbered, ahead)):
            read = [self._read(number, line) for number, line in pool]
            order = sorted(range(len(pool)), key=lambda place: len(read[place].tokens))
            found: dict[int, Answer] = {}
            for start in range(0, len(order), batch):
                chosen = order[start : start + batch]
                found.update(zip(chosen, self._answered([read[place] for place in chosen]), strict=True))
            yield from (found[place] for place in range(len(pool)))

    def _read(self, number: int, line: str) -> _Line:
        text = line.rstrip("\r\n")
        try:
            tokens = self._vocabulary.encode([line.strip()])[0]
        except InputError:
            place = next(place for place, letter in enumerate(text) if "\ud800" <= letter <= "\udfff")
            return _Line(number, text, [], f"character {place + 1} is no UTF-8: convert the text to UTF-8")
        if len(tokens) <= self._longest or self._truncate:
            return _Line(number, text, tokens[: self._longest], "")
        hint = f"{len(tokens)} tokens, and the model reads {self._longest}: shorten it, or use --truncate"
        return _Line(number, text, [], hint)

    def _answered(self, lines: list[_Line]) -> list[Answer]:
        begun = time.perf_counter()
        told = self._translate([line.tokens for line in lines], [line.number for line in lines])
        seconds = time.perf_counter() - begun
        answers = []
        for line, translation in zip(lines, told, strict=True):
            tokens = [] if line.refused else [each.tokens for each in translation.hypotheses]
            texts = self._vocabulary.decode(tokens)
            answers.append(Answer(line.number, line.text, texts, translation, line.refused, seconds))
        return answers
