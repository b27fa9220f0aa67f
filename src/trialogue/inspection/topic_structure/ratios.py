"""How much alike words of one topic are, beside words of different ones and words that often meet, with intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.inspection.topic_structure.attention import AttentionSums
from trialogue.inspection.topic_structure.words import Assignment
from trialogue.intervals import Interval
from trialogue.randomness import numpy_generator

SAME, DIFFERENT, TOGETHER = "same topic", "different topics", "often together"
CLASSES = (SAME, DIFFERENT, TOGETHER)
"""Pairs of words of one topic, of different ones, and as many as the first that occur in most passages together."""

COSINE, DOT = "cosine", "dot product"
ATTENTION, RAW_ATTENTION = "attention", "attention, not debiased"

LEVEL = 0.95
"""That of intervals."""


class TopicComparison(NamedTuple):
    """What a `measure` is on average over the pairs of each of `CLASSES`, and the ratio of the first two."""

    measure: str
    pairs: dict[str, int]
    """how many pairs of words each class has"""
    means: dict[str, Interval]
    ratio: Interval
    """same topic over different topics; NaN where the mean over different ones is not positive"""
    difference: Interval
    """same topic less different topics"""


class Resampling(NamedTuple):
    """How often each of the words (times, words) and documents (times, documents) is taken; row 0 takes each once."""

    words: NDArray[np.float64]
    documents: NDArray[np.float64]


def resampled(words: int, documents: int, times: int, seed: int) -> Resampling:
    """`times` draws of words and of documents with replacement (Efron 1979), behind the row that takes each once.

    Both are drawn: pairs that share a word, and occurrences of one document, are no independent ones.
    """
    random = numpy_generator(seed, "bootstrap")
    drawn = [random.multinomial(of, np.full(of, 1 / of), times) for of in (words, documents)]
    return Resampling(*(np.concatenate((np.ones((1, each.shape[1])), each.astype(float))) for each in drawn))


def compared_embeddings(
    embeddings: Tensor,
    assignment: Assignment,
    together: NDArray[np.int64],
    resampling: Resampling,
) -> list[TopicComparison]:
    """Cosines and dot products of `embeddings` (words, width) of different words, by class.

    `together` (pairs, 2) are pairs by the numbers of words, as those of `assignment` are, the most often together
    first: the class `TOGETHER` are the first of them, as many as there are pairs of one topic.
    """
    times = torch.from_numpy(resampling.words[:, assignment.words]).float()
    classes = {SAME: torch.from_numpy(assignment.same), DIFFERENT: torch.from_numpy(assignment.different)}
    numbers = {
        kind: (_quadratic(pairs.float(), times), int(pairs.sum()) // 2) for kind, pairs in classes.items()
    }
    together = together[: numbers[SAME][1]]
    weights = resampling.words[:, together[:, 0]] * resampling.words[:, together[:, 1]]
    found = []
    for measure in (COSINE, DOT):
        vectors = torch.nn.functional.normalize(embeddings, dim=1) if measure == COSINE else embeddings
        chosen = vectors[torch.from_numpy(assignment.words)]
        values = chosen @ chosen.T
        sums = {kind: (_quadratic(values * pairs, times), *numbers[kind]) for kind, pairs in classes.items()}
        ends = torch.from_numpy(together)
        met = (vectors[ends[:, 0]] * vectors[ends[:, 1]]).sum(1).double().numpy()
        sums[TOGETHER] = (weights @ met, weights.sum(1), len(together))
        found.append(_comparison(measure, sums))
    return found


def compared_attention(
    sums: AttentionSums,
    documents: NDArray[np.int64],
    words: int,
    assignment: Assignment,
    together: NDArray[np.int64],
    resampling: Resampling,
) -> list[TopicComparison]:
    """Attention between different words by class, over all occurrences: debiased, and as it is.

    `documents` (passages,) says which document of `resampling` each passage of `sums` is of; there are so many `words`.
    Of the pairs `together` those that were read count, the first of them, as many as pairs of one topic were read.
    """
    place = np.full(words, -1)
    place[assignment.words] = np.arange(len(assignment.words))
    first, second = place[sums.first], place[sums.second]
    known = (first >= 0) & (second >= 0)
    pair, often = sums.first * words + sums.second, together[:, 0] * words + together[:, 1]
    same = known & assignment.same[first, second]
    often = often[np.isin(often, pair)][: len(np.unique(pair[same]))]
    chosen = {
        SAME: same,
        DIFFERENT: known & assignment.different[first, second],
        TOGETHER: np.isin(pair, often),
    }
    totals: dict[str, dict[str, tuple[NDArray[np.float64], NDArray[np.float64], int]]] = {}
    for kind, rows in chosen.items():
        first, second, of = sums.first[rows], sums.second[rows], documents[sums.passage[rows]]
        columns = np.stack((sums.places[rows], sums.debiased[rows], sums.raw[rows]), 1)
        drawn = np.array(
            [
                (taken[first] * taken[second] * read[of]) @ columns
                for taken, read in zip(resampling.words, resampling.documents, strict=True)
            ]
        )
        pairs = len(np.unique(pair[rows]))
        for column, measure in enumerate((ATTENTION, RAW_ATTENTION), 1):
            totals.setdefault(measure, {})[kind] = (drawn[:, column], drawn[:, 0], pairs)
    return [_comparison(measure, of_kind) for measure, of_kind in totals.items()]


def _quadratic(matrix: Tensor, times: Tensor) -> NDArray[np.float64]:
    """t' M t for each row t of `times`."""
    found: NDArray[np.float64] = ((times @ matrix).double() * times).sum(1).numpy()
    return found


def _comparison(
    measure: str, sums: dict[str, tuple[NDArray[np.float64], NDArray[np.float64], int]]
) -> TopicComparison:
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {kind: total / weight for kind, (total, weight, _) in sums.items()}
        ratio = np.where(means[DIFFERENT] > 0, means[SAME] / means[DIFFERENT], np.nan)
    return TopicComparison(
        measure=measure,
        pairs={kind: pairs for kind, (_, _, pairs) in sums.items()},
        means={kind: _interval(numbers) for kind, numbers in means.items()},
        ratio=_interval(ratio),
        difference=_interval(means[SAME] - means[DIFFERENT]),
    )


def _interval(numbers: NDArray[np.float64]) -> Interval:
    """The first of `numbers` and the quantiles of the others, NaN where one of them is."""
    drawn = numbers[1:]
    if not len(drawn) or np.isnan(drawn).any():
        return Interval(float(numbers[0]), np.nan, np.nan)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(numbers[0]), float(low), float(high))
