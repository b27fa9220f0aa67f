"""Words of a text that are single tokens of a model, and topics that are fitted to them."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from annotated_types import Ge
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from trialogue.errors import InputError
from trialogue.extras import from_extra
from trialogue.randomness import derive_seed, numpy_generator
from trialogue.validation import Count, validated

_WORD = re.compile(r"[^\W\d_]{3,}")
_MARK = re.compile(r"<[^<>\s]*>")
_BATCH_SIZE = 1000


class TokenizedPassage(NamedTuple):
    """A tokenized passage with its words, without stop words.

    Attributes:
        ids: Token ids with special tokens.
        words: Words that are single tokens, in order of occurrence.
        places: Position of each of these words in `ids`.
        several: Words that consist of several tokens, in order of occurrence.
    """

    ids: list[int]
    words: list[str]
    places: list[int]
    several: list[str]


class Words(NamedTuple):
    """Words of a text that are single tokens, without stop words.

    Attributes:
        names: The words in alphabetical order.
        tokens: Token id of each word, int64 of shape (words,). If a word has several tokens, for instance with
            a capital letter or a leading space, this is the most frequent one.
        counts: Number of occurrences of each word in each passage, sparse of shape (passages, words).
        several: Total number of occurrences of words that consist of several tokens. These words are left out.
        occurrences: Total number of occurrences of all words except stop words.
        several_kinds: Number of different words that consist of several tokens in all of their occurrences.
    """

    names: list[str]
    tokens: Tensor
    counts: csr_matrix
    several: int
    occurrences: int
    several_kinds: int


def tokenize_passages(
    tokenizer: Any, texts: Sequence[str], max_length: int | None = None
) -> list[TokenizedPassage]:
    """Tokenize texts and find their words.

    A word is a sequence of at least three letters, converted to lower case. The English stop words of
    scikit-learn and markup, for instance <unk>, are removed.

    Args:
        tokenizer: Fast tokenizer.
        texts: Texts.
        max_length: Number of tokens to which texts are truncated. By default no limit.

    Returns:
        Token ids and words of each text.
    """
    stop_words = from_extra("sklearn.feature_extraction.text", "topics").ENGLISH_STOP_WORDS
    found: list[TokenizedPassage] = []
    for first in range(0, len(texts), _BATCH_SIZE):
        batch = [_MARK.sub(" ", text) for text in texts[first : first + _BATCH_SIZE]]
        encoding = tokenizer(
            batch,
            return_offsets_mapping=True,
            truncation=max_length is not None,
            max_length=max_length,
            verbose=False,
        )
        for text, ids, spans in zip(batch, encoding["input_ids"], encoding["offset_mapping"], strict=True):
            found.append(_find_words(text, ids, spans, stop_words))
    return found


def single_token_words(passages: Sequence[TokenizedPassage], minimum: int) -> Words:
    """Collect the words that occur as a single token in enough passages.

    Args:
        passages: Tokenized passages.
        minimum: Minimum number of passages that contain a word as a single token.

    Returns:
        The words with their tokens and their counts in each passage.

    Raises:
        InputError: If no word occurs in enough passages.
    """
    passage_counts: Counter[str] = Counter()
    tokens: dict[str, Counter[int]] = {}
    several: Counter[str] = Counter()
    for passage in passages:
        passage_counts.update(set(passage.words))
        several.update(passage.several)
        for word, place in zip(passage.words, passage.places, strict=True):
            tokens.setdefault(word, Counter())[passage.ids[place]] += 1
    names = sorted(word for word, count in passage_counts.items() if count >= minimum)
    if not names:
        hint = f"no word is a single token in at least {minimum} passages. Use a longer text or another model"
        raise InputError("text", len(passages), hint)
    number = {word: index for index, word in enumerate(names)}
    rows, columns = [], []
    for row, passage in enumerate(passages):
        indices = [number[word] for word in passage.words if word in number]
        rows += [row] * len(indices)
        columns += indices
    counts = csr_matrix((np.ones(len(rows)), (rows, columns)), (len(passages), len(names)))
    counts.sum_duplicates()
    return Words(
        names=names,
        tokens=torch.tensor([tokens[word].most_common(1)[0][0] for word in names]),
        counts=counts,
        several=several.total(),
        occurrences=several.total() + sum(len(passage.words) for passage in passages),
        several_kinds=len(several.keys() - tokens.keys()),
    )


def most_frequent_pairs(counts: csr_matrix, pairs: int) -> NDArray[np.int64]:
    """Return the pairs of different words that occur together in the largest number of passages.

    Args:
        counts: Number of occurrences in each passage, shape (passages, words).
        pairs: Maximum number of pairs.

    Returns:
        Indices of the words by decreasing number of passages, int64 of shape (pairs, 2). Ties are in the order of the
        indices. There are fewer pairs if fewer words occur together.
    """
    present = (counts > 0).astype(np.float32)
    found = (present.T @ present).tocoo()
    upper = found.row < found.col
    first, second, common = found.row[upper], found.col[upper], found.data[upper]
    order = np.lexsort((second, first, -common))[:pairs]
    return np.stack((first[order], second[order]), 1).astype(np.int64)


def _find_words(
    text: str, ids: list[int], spans: list[tuple[int, int]], stop_words: frozenset[str]
) -> TokenizedPassage:
    """Find the words of a text, and match them with the character spans of its tokens."""
    token_at: dict[tuple[int, int], int] = {}
    for place, (begin, end) in enumerate(spans):
        while begin < end and text[begin].isspace():
            begin += 1
        if begin < end:
            token_at[begin, end] = place
    truncated_end = max((end for _, end in spans), default=0)
    words: list[str] = []
    places: list[int] = []
    several: list[str] = []
    for match in _WORD.finditer(text, 0, truncated_end):
        word = match[0].lower()
        if word in stop_words:
            continue
        if match.span() in token_at:
            words.append(word)
            places.append(token_at[match.span()])
        else:
            several.append(word)
    return TokenizedPassage(ids, words, places, several)


@dataclass(frozen=True, eq=False)
class Assignment:
    """Topics of the most likely words of each topic.

    Args:
        words: Indices of the words that belong to at least one topic, shape (k,).
        topics: Boolean matrix of shape (k, topics). Entry [i, t] is True if word i belongs to topic t.
    """

    words: NDArray[np.int64]
    topics: NDArray[np.bool_]

    @cached_property
    def same(self) -> NDArray[np.bool_]:
        """Boolean matrix of shape (k, k). Entry [i, j] is True if i and j are different words that share a topic."""
        shared = (self.topics.astype(np.float32) @ self.topics.T.astype(np.float32)) > 0
        np.fill_diagonal(shared, False)
        return shared

    @cached_property
    def different(self) -> NDArray[np.bool_]:
        """Boolean matrix of shape (k, k). Entry [i, j] is True if the words i and j share no topic."""
        return (self.topics.astype(np.float32) @ self.topics.T.astype(np.float32)) == 0


@validated
def fit_topics(
    counts: csr_matrix,
    topics: Annotated[int, Ge(2)],
    *,
    passes: Count = 10,
    seed: int = 0,
    report: Callable[[str], object] = lambda _: None,
) -> NDArray[np.float64]:
    """Fit a latent Dirichlet allocation with scikit-learn, by online variational Bayes.

    Both symmetric priors are 1 / topics.

    Args:
        counts: Number of occurrences of each word, shape (passages, words).
        topics: Number of topics.
        passes: Number of passes over the passages, which are in random order.
        seed: Random seed.
        report: Called with progress messages.

    Returns:
        Word distribution of each topic, shape (topics, words), with the largest topic first.

    Raises:
        InputError: If there are fewer passages than topics.

    References:
        Hoffman, Blei and Bach (2010), Online Learning for Latent Dirichlet Allocation.
    """
    if counts.shape[0] < topics:
        hint = f"the corpus has {counts.shape[0]} passages. Use fewer topics or a longer text"
        raise InputError("topics", topics, hint)
    order = numpy_generator(seed, "order of passages").permutation(counts.shape[0])
    model = from_extra("sklearn.decomposition", "topics").LatentDirichletAllocation(
        topics,
        learning_method="online",
        total_samples=counts.shape[0],
        random_state=derive_seed(seed, "topics") % 2**32,
    )
    for done in range(passes):
        report(f"topic model: pass {done + 1} of {passes}")
        with warnings.catch_warnings():
            # Exponentials underflow for topics without words.
            warnings.simplefilter("ignore", RuntimeWarning)
            model.partial_fit(counts[order])
    weights = model.components_[np.argsort(-model.components_.sum(1), kind="stable")]
    return weights / weights.sum(1, keepdims=True)


def assign_words(distributions: NDArray[np.float64], words: int, *, single: bool) -> Assignment:
    """Represent each topic by its most likely words.

    Args:
        distributions: Word distribution of each topic, shape (topics, words).
        words: Number of words per topic.
        single: Whether to leave out words that belong to several topics.

    Returns:
        The words with their topics.

    Raises:
        InputError: If there are fewer words than `words`.
    """
    if not 1 <= words <= distributions.shape[1]:
        number = distributions.shape[1]
        hint = f"use from 2 to {number}, the number of words of the text that are single tokens of the model"
        raise InputError("words", words, hint)
    members = np.zeros(distributions.shape, dtype=np.bool_)
    np.put_along_axis(members, np.argsort(-distributions, axis=1, kind="stable")[:, :words], True, axis=1)
    topic_counts = members.sum(0)
    assigned = np.flatnonzero(topic_counts == 1 if single else topic_counts >= 1)
    return Assignment(assigned, members.T[assigned])
