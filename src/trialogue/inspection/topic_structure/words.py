"""The words of passages that are single tokens of a model, and the topics of these words."""

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
from trialogue.randomness import numpy_generator, seed_of
from trialogue.validation import Count, validated

_WORD = re.compile(r"[^\W\d_]{3,}")
_MARK = re.compile(r"<[^<>\s]*>")
_AT_ONCE = 1000


class Placed(NamedTuple):
    """A passage as a model reads it: its token ids, special ones included, and where in them single-token words are."""

    ids: list[int]
    words: list[str]
    places: list[int]
    several: list[str]
    """The words that are more than one token"""


class Words(NamedTuple):
    """The words that topics are made of, alphabetically: those that are single tokens, and no stop words."""

    names: list[str]
    tokens: Tensor
    """(words,) int64: the token that each word most often is, among those that differ by case or a space"""
    counts: csr_matrix
    """(passages, words): how often each occurs"""
    several: int
    """occurrences of words that are more than one token, which nothing here is about"""
    occurrences: int
    """occurrences of words but for stop words, those among them"""
    several_kinds: int
    """how many words are more than one token wherever they occur"""


def placed(tokenizer: Any, texts: Sequence[str], max_length: int | None = None) -> list[Placed]:
    """`texts` as the `tokenizer` reads them, cut to `max_length` tokens.

    A word is a run of at least three letters outside of marks such as <unk>, in lower case; English stop words are left
    out (those of scikit-learn).
    """
    stop_words = from_extra("sklearn.feature_extraction.text", "topics").ENGLISH_STOP_WORDS
    found: list[Placed] = []
    for first in range(0, len(texts), _AT_ONCE):
        some = [_MARK.sub(" ", text) for text in texts[first : first + _AT_ONCE]]
        read = tokenizer(
            some,
            return_offsets_mapping=True,
            truncation=max_length is not None,
            max_length=max_length,
            verbose=False,
        )
        for text, ids, spans in zip(some, read["input_ids"], read["offset_mapping"], strict=True):
            found.append(_placed(text, ids, spans, stop_words))
    return found


def words_of(passages: Sequence[Placed], least: int) -> Words:
    """The words that are single tokens in at least `least` of the `passages`.

    Raises `InputError` where there are none.
    """
    within: Counter[str] = Counter()
    tokens: dict[str, Counter[int]] = {}
    lost: Counter[str] = Counter()
    for passage in passages:
        within.update(set(passage.words))
        lost.update(passage.several)
        for word, place in zip(passage.words, passage.places, strict=True):
            tokens.setdefault(word, Counter())[passage.ids[place]] += 1
    names = sorted(word for word, count in within.items() if count >= least)
    if not names:
        hint = f"no word of the text is one token in {least} passages of it: give a longer text, or another model"
        raise InputError("text", len(passages), hint)
    number = {word: index for index, word in enumerate(names)}
    rows, columns = [], []
    for row, passage in enumerate(passages):
        known = [number[word] for word in passage.words if word in number]
        rows += [row] * len(known)
        columns += known
    counts = csr_matrix((np.ones(len(rows)), (rows, columns)), (len(passages), len(names)))
    counts.sum_duplicates()
    return Words(
        names=names,
        tokens=torch.tensor([tokens[word].most_common(1)[0][0] for word in names]),
        counts=counts,
        several=lost.total(),
        occurrences=lost.total() + sum(len(passage.words) for passage in passages),
        several_kinds=len(lost.keys() - tokens.keys()),
    )


def together(counts: csr_matrix, pairs: int) -> NDArray[np.int64]:
    """The `pairs` of different words (pairs, 2) that occur in the most passages together, first of all the first.

    `counts` (passages, words). Of pairs that do so equally often those come first whose words do. Fewer pairs where
    fewer words ever meet.
    """
    present = (counts > 0).astype(np.float32)
    found = (present.T @ present).tocoo()
    upper = found.row < found.col
    first, second, often = found.row[upper], found.col[upper], found.data[upper]
    order = np.lexsort((second, first, -often))[:pairs]
    return np.stack((first[order], second[order]), 1).astype(np.int64)


def _placed(text: str, ids: list[int], spans: list[tuple[int, int]], stop_words: frozenset[str]) -> Placed:
    at: dict[tuple[int, int], int] = {}
    for place, (begin, end) in enumerate(spans):
        while begin < end and text[begin].isspace():
            begin += 1
        if begin < end:
            at[begin, end] = place
    reached = max((end for _, end in spans), default=0)
    words: list[str] = []
    places: list[int] = []
    several: list[str] = []
    for match in _WORD.finditer(text, 0, reached):
        word = match[0].lower()
        if word in stop_words:
            continue
        if match.span() in at:
            words.append(word)
            places.append(at[match.span()])
        else:
            several.append(word)
    return Placed(ids, words, places, several)


@dataclass(frozen=True, eq=False)
class Assignment:
    """Words and the topics that they are of."""

    words: NDArray[np.int64]
    """(k,) the words that are of some topic"""
    topics: NDArray[np.bool_]
    """(k, T) whether a word is of a topic"""

    @cached_property
    def same(self) -> NDArray[np.bool_]:
        """(k, k) pairs of different words that share a topic."""
        shared = (self.topics.astype(np.float32) @ self.topics.T.astype(np.float32)) > 0
        np.fill_diagonal(shared, False)
        return shared

    @cached_property
    def different(self) -> NDArray[np.bool_]:
        """(k, k) pairs of words that share no topic."""
        return (self.topics.astype(np.float32) @ self.topics.T.astype(np.float32)) == 0


@validated
def fitted_topics(
    counts: csr_matrix,
    topics: Annotated[int, Ge(2)],
    *,
    passes: Count = 10,
    seed: int = 0,
    report: Callable[[str], object] = lambda _: None,
) -> NDArray[np.float64]:
    """The distributions of words (topics, words) of a latent Dirichlet allocation of `counts` (passages, words), rows
    sum to 1.

    By online variational Bayes (Hoffman, Blei and Bach 2010) as scikit-learn has it, with its symmetric priors 1/T, in
    `passes` over passages in an order drawn by `seed`; the topic of the most words comes first. `report` is told what
    is done. Raises `InputError` where there are fewer passages than topics.
    """
    if counts.shape[0] < topics:
        hint = f"the corpus has {counts.shape[0]} documents: ask for fewer topics, or give a longer text"
        raise InputError("topics", topics, hint)
    order = numpy_generator(seed, "order of passages").permutation(counts.shape[0])
    model = from_extra("sklearn.decomposition", "topics").LatentDirichletAllocation(
        topics,
        learning_method="online",
        total_samples=counts.shape[0],
        random_state=seed_of(seed, "topics") % 2**32,
    )
    for done in range(passes):
        report(f"topics: pass {done + 1} of {passes}")
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", RuntimeWarning
            )  # exponentials of topics that no word is of underflow
            model.partial_fit(counts[order])
    weights = model.components_[np.argsort(-model.components_.sum(1), kind="stable")]
    return weights / weights.sum(1, keepdims=True)


def assigned(distributions: NDArray[np.float64], words: int, *, single: bool) -> Assignment:
    """The `words` likeliest words of each topic of `distributions` (topics, words); of these, `single` keeps the words
    of one.

    Raises `InputError` where topics have fewer words.
    """
    if not 1 <= words <= distributions.shape[1]:
        hint = f"the text has {distributions.shape[1]} words that are single tokens: use from 2 to that many"
        raise InputError("words", words, hint)
    members = np.zeros(distributions.shape, dtype=np.bool_)
    np.put_along_axis(members, np.argsort(-distributions, axis=1, kind="stable")[:, :words], True, axis=1)
    often = members.sum(0)
    kept = np.flatnonzero(often == 1 if single else often >= 1)
    return Assignment(kept, members.T[kept])
