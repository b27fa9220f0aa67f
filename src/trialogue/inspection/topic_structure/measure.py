"""Topics of a text, and what a model makes of their words: fitted and measured once, compared in any number of ways."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Interval
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data.corpus.documents import Passage
from trialogue.errors import InputError
from trialogue.inspection.topic_structure.attention import AttentionSums, attention_sums
from trialogue.inspection.topic_structure.ratios import (
    TopicComparison,
    compared_attention,
    compared_embeddings,
    resampled,
)
from trialogue.inspection.topic_structure.words import (
    Words,
    assigned,
    fitted_topics,
    placed,
    together,
    words_of,
)
from trialogue.models.hub.attention_weights import AttendingModel
from trialogue.randomness import numpy_generator
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.validation import Count, Natural, validated

_TOPICS = "trialogue topics 1"
AS_READ = ", as read"
"""Behind a measure of embeddings with all that the model adds to them."""

MOST = 200
"""The most words of a topic that can be compared."""
TopicWords = Annotated[int, Interval(ge=2, le=MOST)]
_MET = 19_900

Report = Callable[[str], object]


@validated
@dataclass(frozen=True, kw_only=True)
class TopicSettings:
    """How topics are found and attention is read; raises `InputError` where a field is out of range."""

    topics: Annotated[int, Ge(2)] = 100
    passes: Count = 10
    """Of the topic model over the text"""
    least: Count = 5
    """In how many passages a word has to be"""
    read: Count = 200
    """Passages that attention is measured in, drawn by `seed`"""
    length: Annotated[int, Ge(8)] = 128
    """Tokens that these are cut to"""
    shortest: Annotated[int, Ge(8)] | None = None
    """Where given, each is cut to a length drawn between this and `length`, all alike likely"""
    seed: Natural = 0

    def __post_init__(self) -> None:
        if self.shortest is not None and self.shortest > self.length:
            raise InputError("shortest", self.shortest, f"use at most {self.length}")


@dataclass(frozen=True, eq=False)
class TopicMeasurement:
    """What was measured of a model: compare it with `compare`.

    `met` (pairs, 2) are the pairs of words that most often are in a passage together. `distributions` (topics, words)
    are the topics' distributions of words. `table` (words, width) are the rows of the model's table of embeddings,
    `read` what its first block reads, None where that is the row times a number. `documents` (passages,) says of which
    document each passage is that attention was measured in.
    """

    model: str
    words: Words
    met: NDArray[np.int64]
    distributions: NDArray[np.float64]
    table: Tensor
    read: Tensor | None
    sums: AttentionSums
    documents: NDArray[np.int64]

    @validated
    def compare(
        self, words: TopicWords, *, single: bool = True, resamples: Natural = 0, seed: Natural = 0
    ) -> list[TopicComparison]:
        """Every measure over pairs of the `words` likeliest words of topics: those of one topic alone, or of any.

        The pairs that often meet are as many as those of one topic, by each measure, of at most 19,900 that are known.
        Intervals are of `resamples` draws of words and documents. Raises `InputError` where topics have fewer words, or
        no two remain.
        """
        assignment = assigned(self.distributions, words, single=single)
        if not assignment.same.any() or not assignment.different.any():
            hint = (
                "no two words are of one topic alone, and of different ones: use more words, or more topics"
            )
            raise InputError("words", words, hint)
        kinds, places = np.unique(self.documents, return_inverse=True)
        draws = resampled(len(self.words.names), len(kinds), resamples, seed)
        found = compared_embeddings(self.table, assignment, self.met, draws)
        if self.read is not None:
            as_read = compared_embeddings(self.read, assignment, self.met, draws)
            found += [one._replace(measure=one.measure + AS_READ) for one in as_read]
        size = len(self.words.names)
        return found + compared_attention(self.sums, places, size, assignment, self.met, draws)

    def top_words(self, words: int) -> list[list[str]]:
        """The likeliest words of each topic, the topic of the most words first."""
        order = np.argsort(-self.distributions, axis=1, kind="stable")[:, :words]
        return [[self.words.names[word] for word in row] for row in order]


def measured(
    model: AttendingModel,
    corpus: Sequence[Passage],
    settings: TopicSettings,
    *,
    folder: Path | None = None,
    control: bool = True,
    control_read: int | None = None,
    report: Report = lambda _: None,
) -> list[TopicMeasurement]:
    """What `model` makes of the topics of `corpus`, and with `control` what its architecture makes of them by chance.

    The control has random weights, drawn by the seed, and reads `control_read` of the passages, by default all. Topics
    and attention are filed in `folder`, by what they depend on, so that a run that was killed goes on and ends in the
    same numbers. `report` is told what is done. Raises `InputError` where the corpus has fewer passages than topics, no
    words that are single tokens, or the model too few positions.
    """
    if len(corpus) < settings.topics:
        hint = f"the corpus has {len(corpus)} passages to find them in: ask for fewer, or give a longer text"
        raise InputError("topics", settings.topics, hint)
    if model.max_length is not None and settings.length > model.max_length:
        raise InputError(
            "length", settings.length, f"{model.name} knows {model.max_length} positions: use at most these"
        )
    report(f"reading {len(corpus)} passages in tokens of {model.name}")
    words = words_of(placed(model.tokenizer, [passage.text for passage in corpus]), settings.least)
    named = _named(corpus, words, asdict(settings))
    # What is read of the corpus afterwards makes no difference to its topics.
    fitted = {field: getattr(settings, field) for field in ("topics", "passes", "least", "seed")}
    path = None if folder is None else folder / f"topics-{_named(corpus, words, fitted)}.safetensors"
    if path is not None and path.exists():
        distributions = read_tensors(path, _TOPICS, "delete it to fit anew")[0]["distributions"].numpy()
    else:
        distributions = fitted_topics(
            words.counts, settings.topics, passes=settings.passes, seed=settings.seed, report=report
        )
        if path is not None:
            write_tensors(path, _TOPICS, {"distributions": torch.from_numpy(distributions)}, fitted)
    met = together(words.counts, _MET)
    drawn = numpy_generator(settings.seed, "passages read").permutation(len(corpus))[: settings.read]
    lengths = numpy_generator(settings.seed, "lengths read").integers(
        settings.length if settings.shortest is None else settings.shortest, settings.length + 1, len(drawn)
    )
    found = []
    for one in [model, model.with_random_weights(settings.seed)] if control else [model]:
        some = drawn if one is model else drawn[:control_read]
        texts = [
            placed(one.tokenizer, [corpus[place].text], length)[0]
            for place, length in zip(some, lengths, strict=False)
        ]
        whose = _digest(one.name, model.files, len(some))
        file = None if folder is None else folder / f"attention-{named}-{whose}.safetensors"
        sums = attention_sums(one, texts, words.names, path=file, report=report)
        found.append(
            TopicMeasurement(
                one.name,
                words,
                met,
                distributions,
                one.embeddings(words.tokens),
                _as_read(one, words.tokens),
                sums,
                np.array([corpus[place].document for place in some]),
            )
        )
    return found


def _as_read(model: AttendingModel, tokens: Tensor) -> Tensor | None:
    """What the first block reads of `tokens`; None where it is the row of the table times a number."""
    few = tokens[:4]
    rows, read = model.embeddings(few), model.read_embeddings(few)
    if rows.shape == read.shape and bool((torch.cosine_similarity(rows, read) > 1 - 1e-5).all()):
        return None
    return model.read_embeddings(tokens)


def _named(corpus: Sequence[Passage], words: Words, settings: dict[str, object]) -> str:
    """What tells what is made of one corpus in one model's words from others."""
    return _digest([passage.text for passage in corpus], words.names, words.tokens.tolist(), settings)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
