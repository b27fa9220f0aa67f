"""Translation of texts line by line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from trialogue.errors import InputError
from trialogue.generation.translation.model import TranslationModel
from trialogue.generation.translation.settings import TranslationSettings
from trialogue.samplers.translation.hypotheses import Translation
from trialogue.samplers.translation.writing import rerank

_POOL = 16
"""Number of batches to read ahead, so that lines of similar length are translated together."""


class LineResult(NamedTuple):
    """Translation of one line.

    A hypothesis is one of several candidate translations.

    Attributes:
        number: Line number, counted from 1.
        source: The line.
        texts: Texts of the hypotheses, best first. Empty if the line was not translated.
        translation: Token ids and scores of the hypotheses.
        refused: Reason why the line was not translated. Empty if it was.
        seconds: Time in seconds to translate the batch that contains the line.
    """

    number: int
    source: str
    texts: list[str]
    translation: Translation
    refused: str
    seconds: float

    @property
    def text(self) -> str:
        """Best hypothesis on a single line, or an empty string."""
        return " ".join(self.texts[0].splitlines()) if self.texts else ""

    def record(self) -> dict[str, Any]:
        """Convert the result to a dictionary that can be written as JSON."""
        if self.refused:
            return {"line": self.number, "source": self.source, "translation": "", "error": self.refused}
        pairs = zip(self.texts, self.translation.hypotheses, strict=True)
        return {
            "line": self.number,
            "source": self.source,
            "translation": self.text,
            "hypotheses": [
                {"text": text, "log_prob": hypothesis.log_prob, "score": hypothesis.score}
                for text, hypothesis in pairs
            ],
            "passes": self.translation.passes,
            "seconds": self.seconds,
        }


class _Line(NamedTuple):
    number: int
    text: str
    tokens: list[int]
    """Empty if the line is refused or blank."""
    refused: str


class LineTranslator:
    """Translates texts line by line.

    A blank line has an empty translation. A line with more tokens than the model allows is refused or
    truncated. A line with bytes that are not UTF-8 is refused.

    Args:
        model: Translation model.
        settings: Options on decoding.
        truncate: Whether to truncate long lines instead of refusing them.

    Raises:
        InputError: If the model lacks a network that the options require.
    """

    def __init__(
        self, model: TranslationModel, settings: TranslationSettings, *, truncate: bool = False
    ) -> None:
        self._vocabulary, self._max_length, self._truncate = model.vocabulary, model.max_length, truncate
        self._translate: Callable[[Sequence[Sequence[int]], Sequence[int]], list[Translation]]
        if settings.network == "twin":
            twin, search = model.twin(), settings.search
            self._translate = lambda sources, _: search.translate(twin, sources)
        else:
            refiner, beam = model.refiner(), settings.beam
            if settings.rescore and "twin" not in model.networks:
                raise InputError(
                    "rescore", True, "leave it out or train the model with both networks: it has no twin"
                )
            ranking = model.twin() if settings.rescore else None
            if ranking and ranking.model.config.max_length < refiner.model.config.max_length:
                hint = f"leave it out: the twin is limited to {ranking.model.config.max_length} tokens"
                raise InputError("rescore", True, hint)

            def refine(sources: Sequence[Sequence[int]], numbers: Sequence[int]) -> list[Translation]:
                found = beam.translate(refiner, sources, seed=settings.seed, numbers=numbers)
                return rerank(ranking, sources, found, beam.alpha) if ranking else found

            self._translate = refine

    def translate(self, lines: Iterable[str], batch: int = 1) -> Iterator[LineResult]:
        """Translate lines and yield the results in order.

        Args:
            lines: Lines to translate.
            batch: Number of lines of similar length that are translated together. With 1, each line is
                translated before the next one is read.

        Yields:
            One result per line.
        """
        numbered = enumerate(lines, 1)
        ahead = 1 if batch == 1 else _POOL * batch
        while pool := list(islice(numbered, ahead)):
            read = [self._read(number, line) for number, line in pool]
            order = sorted(range(len(pool)), key=lambda place: len(read[place].tokens))
            found: dict[int, LineResult] = {}
            for start in range(0, len(order), batch):
                chosen = order[start : start + batch]
                found.update(
                    zip(chosen, self._translate_batch([read[place] for place in chosen]), strict=True)
                )
            yield from (found[place] for place in range(len(pool)))

    def _read(self, number: int, line: str) -> _Line:
        text = line.rstrip("\r\n")
        try:
            tokens = self._vocabulary.encode([line.strip()])[0]
        except InputError:
            place = next(place for place, letter in enumerate(text) if "\ud800" <= letter <= "\udfff")
            return _Line(number, text, [], f"convert the text to UTF-8: character {place + 1} is invalid")
        if len(tokens) <= self._max_length or self._truncate:
            return _Line(number, text, tokens[: self._max_length], "")
        hint = (
            f"shorten it or use --truncate: it has {len(tokens)} tokens, and the limit is {self._max_length}"
        )
        return _Line(number, text, [], hint)

    def _translate_batch(self, lines: list[_Line]) -> list[LineResult]:
        start_time = time.perf_counter()
        translations = self._translate([line.tokens for line in lines], [line.number for line in lines])
        seconds = time.perf_counter() - start_time
        answers = []
        for line, translation in zip(lines, translations, strict=True):
            tokens = [] if line.refused else [hypothesis.tokens for hypothesis in translation.hypotheses]
            texts = self._vocabulary.decode(tokens)
            answers.append(LineResult(line.number, line.text, texts, translation, line.refused, seconds))
        return answers
