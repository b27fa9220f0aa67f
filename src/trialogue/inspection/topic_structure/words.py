"""The words of passages in the tokens of a model: which of them are single tokens, and where these stand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from trialogue.errors import InputError
from trialogue.extras import from_extra

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
