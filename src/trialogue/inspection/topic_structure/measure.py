"""Topics of a text, and the embeddings and attention of a model for the words of these topics."""

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
    bootstrap_counts,
    compare_attention,
    compare_embeddings,
)
from trialogue.inspection.topic_structure.words import (
    Words,
    assign_words,
    fit_topics,
    most_frequent_pairs,
    single_token_words,
    tokenize_passages,
)
from trialogue.models.hub.attention_weights import AttentionModel
from trialogue.randomness import numpy_generator
from trialogue.tensor_files import read_tensors, write_tensors
from trialogue.validation import Count, Natural, validated

_TOPICS = "trialogue topics 1"
AS_READ = ", as read"
"""Suffix of measures of the embeddings as the first layer reads them, for instance after a normalization."""

MOST = 200
"""Maximum number of words per topic."""
TopicWords = Annotated[int, Interval(ge=2, le=MOST)]
_MAX_FREQUENT_PAIRS = 19_900

Report = Callable[[str], object]


@validated
@dataclass(frozen=True, kw_only=True)
class TopicSettings:
    """Settings of the topic model and of the attention measurement.

    Args:
        topics: Number of topics.
        passes: Number of passes of the topic model over the text.
        least: Minimum number of passages that must contain a word. Rarer words are left out.
        read: Number of randomly selected passages in which attention is measured.
        length: Number of tokens to which these passages are truncated.
        shortest: Minimum length of a truncated passage. If given, the length of each passage is sampled
            uniformly between `shortest` and `length`.
        seed: Random seed.

    Raises:
        InputError: If a field is out of range.
    """

    topics: Annotated[int, Ge(2)] = 100
    passes: Count = 10
    least: Count = 5
    read: Count = 200
    length: Annotated[int, Ge(8)] = 128
    shortest: Annotated[int, Ge(8)] | None = None
    seed: Natural = 0

    def __post_init__(self) -> None:
        if self.shortest is not None and self.shortest > self.length:
            raise InputError("shortest", self.shortest, f"use at most {self.length}")


@dataclass(frozen=True, eq=False)
class TopicMeasurement:
    """Embeddings and attention of a model for the words of a text.

    Args:
        model: Name of the model.
        words: Words of the text that are single tokens.
        frequent_pairs: Indices of the pairs of words that most often occur in the same passage, shape (pairs,
            2).
        distributions: Word distribution of each topic, shape (topics, words).
        table: Input embeddings of the words, shape (words, width).
        read: Embeddings as the first layer receives them, shape (words, width). None if they are the input
            embeddings times a scalar.
        sums: Attention between words.
        documents: Index of the document of each passage in which attention was measured, shape (passages,).
    """

    model: str
    words: Words
    frequent_pairs: NDArray[np.int64]
    distributions: NDArray[np.float64]
    table: Tensor
    read: Tensor | None
    sums: AttentionSums
    documents: NDArray[np.int64]

    @validated
    def compare(
        self, words: TopicWords, *, single: bool = True, resamples: Natural = 0, seed: Natural = 0
    ) -> list[TopicComparison]:
        """Compare pairs of words of the same topic with pairs of different topics.

        A third class has pairs of words that often occur in the same passage. It has as many pairs as the first
        class, but at most 19,900.

        Args:
            words: Number of words that represent a topic, which are its most likely ones.
            single: Whether to leave out words that represent several topics.
            resamples: Number of bootstrap resamples of words and documents. 0 for no intervals.
            seed: Random seed of the resamples.

        Returns:
            One comparison per kind of similarity, for instance cosine or attention.

        Raises:
            InputError: If a topic has fewer words, or a class has no pairs.
        """
        assignment = assign_words(self.distributions, words, single=single)
        if not assignment.same.any() or not assignment.different.any():
            hint = "no pairs of one topic, or of different topics, remain. Use more words, more topics or a longer text"
            raise InputError("words", words, hint)
        unique, documents = np.unique(self.documents, return_inverse=True)
        size = len(self.words.names)
        counts = bootstrap_counts(size, len(unique), resamples, seed)
        found = compare_embeddings(self.table, assignment, self.frequent_pairs, counts)
        if self.read is not None:
            as_read = compare_embeddings(self.read, assignment, self.frequent_pairs, counts)
            found += [one._replace(measure=one.measure + AS_READ) for one in as_read]
        return found + compare_attention(self.sums, documents, size, assignment, self.frequent_pairs, counts)

    def top_words(self, words: int) -> list[list[str]]:
        """Return the most likely words of each topic.

        Args:
            words: Number of words per topic.

        Returns:
            One list of words per topic, the largest topic first and the most likely word first.
        """
        order = np.argsort(-self.distributions, axis=1, kind="stable")[:, :words]
        return [[self.words.names[word] for word in row] for row in order]


def measure_topics(
    model: AttentionModel,
    corpus: Sequence[Passage],
    settings: TopicSettings,
    *,
    folder: Path | None = None,
    control: bool = True,
    control_read: int | None = None,
    report: Report = lambda _: None,
) -> list[TopicMeasurement]:
    """Fit topics to a text, and measure the embeddings and the attention of a model for its words.

    An interrupted call resumes from the files in `folder`, with the same results. File names contain a hash
    of the inputs, so several models can share the folder.

    Args:
        model: Model that gives access to its embeddings and attention weights.
        corpus: Passages of the text.
        settings: Settings of the topic model and of the attention measurement.
        folder: Folder for intermediate results. None to keep them in memory only.
        control: Whether to measure the architecture with random weights as well.
        control_read: Number of passages in which the attention of the control is measured, by default all.
        report: Called with progress messages.

    Returns:
        The measurement of the model and, if requested, the measurement of the control.

    Raises:
        InputError: If there are fewer passages than topics, fewer than two words of the text are single tokens, or the
            passages are longer than the model's maximum length.
    """
    if len(corpus) < settings.topics:
        hint = f"the corpus has {len(corpus)} passages. Use fewer topics or a longer text"
        raise InputError("topics", settings.topics, hint)
    if model.max_length is not None and settings.length > model.max_length:
        hint = f"use at most {model.max_length}, the maximum length of {model.name}"
        raise InputError("length", settings.length, hint)
    report(f"tokenizing {len(corpus)} passages with the tokenizer of {model.name}")
    tokenized = tokenize_passages(model.tokenizer, [passage.text for passage in corpus])
    words = single_token_words(tokenized, settings.least)
    if len(words.names) < 2:
        hint = f"only one word is a single token of {model.name}. Use a longer text or another model"
        raise InputError("text", words.names, hint)
    name = _file_name(corpus, words, asdict(settings))
    # The topics depend only on these settings, so that measurements with other settings can share them.
    topic_settings = {field: getattr(settings, field) for field in ("topics", "passes", "least", "seed")}
    path = (
        None if folder is None else folder / f"topics-{_file_name(corpus, words, topic_settings)}.safetensors"
    )
    if path is not None and path.exists():
        hint = "delete the file and run the command again"
        distributions = read_tensors(path, _TOPICS, hint)[0]["distributions"].numpy()
    else:
        distributions = fit_topics(
            words.counts, settings.topics, passes=settings.passes, seed=settings.seed, report=report
        )
        if path is not None:
            write_tensors(path, _TOPICS, {"distributions": torch.from_numpy(distributions)}, topic_settings)
    frequent_pairs = most_frequent_pairs(words.counts, _MAX_FREQUENT_PAIRS)
    selected = numpy_generator(settings.seed, "passages read").permutation(len(corpus))[: settings.read]
    lengths = numpy_generator(settings.seed, "lengths read").integers(
        settings.length if settings.shortest is None else settings.shortest,
        settings.length + 1,
        len(selected),
    )
    found = []
    for one in [model, model.with_random_weights(settings.seed)] if control else [model]:
        indices = selected if one is model else selected[:control_read]
        texts = [
            tokenize_passages(one.tokenizer, [corpus[index].text], length)[0]
            for index, length in zip(indices, lengths, strict=False)
        ]
        model_hash = _digest(one.name, model.files, len(indices))
        file = None if folder is None else folder / f"attention-{name}-{model_hash}.safetensors"
        sums = attention_sums(one, texts, words.names, path=file, report=report)
        found.append(
            TopicMeasurement(
                one.name,
                words,
                frequent_pairs,
                distributions,
                one.embeddings(words.tokens),
                _read_embeddings(one, words.tokens),
                sums,
                np.array([corpus[index].document for index in indices]),
            )
        )
    return found


def _read_embeddings(model: AttentionModel, tokens: Tensor) -> Tensor | None:
    """Return the embeddings as the first layer reads them, None if they are the input embeddings times a scalar."""
    few = tokens[:4]
    rows, read = model.embeddings(few), model.read_embeddings(few)
    if rows.shape == read.shape and bool((torch.cosine_similarity(rows, read) > 1 - 1e-5).all()):
        return None
    return model.read_embeddings(tokens)


def _file_name(corpus: Sequence[Passage], words: Words, settings: dict[str, object]) -> str:
    """Return a hash of the inputs of a computation."""
    return _digest([passage.text for passage in corpus], words.names, words.tokens.tolist(), settings)


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
