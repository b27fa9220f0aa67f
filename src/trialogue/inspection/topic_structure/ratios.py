"""Comparison of word pairs of the same topic with pairs of different topics, and with frequent pairs."""

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
"""Classes of pairs of words. The last one has as many pairs as the first, those that most often share a passage."""

COSINE, DOT = "cosine", "dot product"
ATTENTION, RAW_ATTENTION = "attention", "attention, not debiased"

LEVEL = 0.95
"""Confidence level of all intervals."""


class TopicComparison(NamedTuple):
    """Similarities of three classes of word pairs, by one kind of similarity.

    The classes are `SAME` (words of the same topic), `DIFFERENT` (words of different topics) and `TOGETHER`
    (words that often occur in the same passage).

    Attributes:
        measure: Kind of similarity, for instance `COSINE`.
        pairs: Number of pairs of each class.
        means: Mean similarity of each class, with its interval.
        ratio: Mean of `SAME` divided by the mean of `DIFFERENT`. NaN unless the latter is positive.
        difference: Mean of `SAME` minus the mean of `DIFFERENT`.
    """

    measure: str
    pairs: dict[str, int]
    means: dict[str, Interval]
    ratio: Interval
    difference: Interval


class BootstrapCounts(NamedTuple):
    """Number of times that each word and each document occurs in each bootstrap resample.

    Row 0 is the original sample, in which each count is one.

    Attributes:
        words: Counts of the words, shape (1 + resamples, words).
        documents: Counts of the documents, shape (1 + resamples, documents).
    """

    words: NDArray[np.float64]
    documents: NDArray[np.float64]


def bootstrap_counts(words: int, documents: int, resamples: int, seed: int) -> BootstrapCounts:
    """Resample words and documents with replacement (Efron 1979).

    Words are resampled because pairs with a common word are not independent. Documents are resampled because
    occurrences in the same document are not independent.

    Args:
        words: Number of words.
        documents: Number of documents.
        resamples: Number of resamples. 0 for none.
        seed: Random seed.

    Returns:
        Counts of words and documents in each resample.
    """
    random = numpy_generator(seed, "bootstrap")
    counts = [random.multinomial(n, np.full(n, 1 / n), resamples) for n in (words, documents)]
    return BootstrapCounts(
        *(np.concatenate((np.ones((1, each.shape[1])), each.astype(float))) for each in counts)
    )


def compare_embeddings(
    embeddings: Tensor,
    assignment: Assignment,
    frequent_pairs: NDArray[np.int64],
    counts: BootstrapCounts,
) -> list[TopicComparison]:
    """Compare the similarity of embeddings between three classes of word pairs.

    The classes have words of the same topic, words of different topics, and words that often occur in the same
    passage. Similarity is the cosine or the dot product.

    Args:
        embeddings: Embeddings of all words, shape (words, width).
        assignment: Topics of the words.
        frequent_pairs: Indices of pairs of words by decreasing number of common passages, shape (pairs, 2). The
            third class has the first of them.
        counts: Bootstrap resamples.

    Returns:
        One comparison for cosines and one for dot products.
    """
    times = torch.from_numpy(counts.words[:, assignment.words]).float()
    classes = {SAME: torch.from_numpy(assignment.same), DIFFERENT: torch.from_numpy(assignment.different)}
    numbers = {
        kind: (_quadratic_forms(pairs.float(), times), int(pairs.sum()) // 2)
        for kind, pairs in classes.items()
    }
    frequent_pairs = frequent_pairs[: numbers[SAME][1]]
    weights = counts.words[:, frequent_pairs[:, 0]] * counts.words[:, frequent_pairs[:, 1]]
    ends = torch.from_numpy(frequent_pairs)
    found = []
    for measure in (COSINE, DOT):
        vectors = torch.nn.functional.normalize(embeddings, dim=1) if measure == COSINE else embeddings
        assigned = vectors[torch.from_numpy(assignment.words)]
        values = assigned @ assigned.T
        sums = {
            kind: (_quadratic_forms(values * pairs, times), *numbers[kind]) for kind, pairs in classes.items()
        }
        frequent = (vectors[ends[:, 0]] * vectors[ends[:, 1]]).sum(1).double().numpy()
        sums[TOGETHER] = (weights @ frequent, weights.sum(1), len(frequent_pairs))
        found.append(_comparison(measure, sums))
    return found


def compare_attention(
    sums: AttentionSums,
    documents: NDArray[np.int64],
    words: int,
    assignment: Assignment,
    frequent_pairs: NDArray[np.int64],
    counts: BootstrapCounts,
) -> list[TopicComparison]:
    """Compare the attention between words of three classes of word pairs.

    The classes have words of the same topic, words of different topics, and words that often occur in the same passage.
    Means are over all occurrences of the pairs in the measured passages. Pairs that do not occur there are left out.

    Args:
        sums: Attention between words.
        documents: Index of the document of each passage of `sums`, shape (passages,).
        words: Number of words.
        assignment: Topics of the words.
        frequent_pairs: Indices of pairs of words by decreasing number of common passages, shape (pairs, 2). The third
            class has the first of them.
        counts: Bootstrap resamples.

    Returns:
        One comparison for debiased attention, which is corrected for the number of visible keys, and one for raw
        attention weights.
    """
    index = np.full(words, -1)
    index[assignment.words] = np.arange(len(assignment.words))
    first, second = index[sums.first], index[sums.second]
    known = (first >= 0) & (second >= 0)
    pair, frequent = sums.first * words + sums.second, frequent_pairs[:, 0] * words + frequent_pairs[:, 1]
    same = known & assignment.same[first, second]
    frequent = frequent[np.isin(frequent, pair)][: len(np.unique(pair[same]))]
    classes = {
        SAME: same,
        DIFFERENT: known & assignment.different[first, second],
        TOGETHER: np.isin(pair, frequent),
    }
    totals: dict[str, dict[str, tuple[NDArray[np.float64], NDArray[np.float64], int]]] = {}
    for kind, rows in classes.items():
        first, second, document = sums.first[rows], sums.second[rows], documents[sums.passage[rows]]
        columns = np.stack((sums.places[rows], sums.debiased[rows], sums.raw[rows]), 1)
        resamples = np.array(
            [
                (word_counts[first] * word_counts[second] * document_counts[document]) @ columns
                for word_counts, document_counts in zip(counts.words, counts.documents, strict=True)
            ]
        )
        pairs = len(np.unique(pair[rows]))
        for column, measure in enumerate((ATTENTION, RAW_ATTENTION), 1):
            totals.setdefault(measure, {})[kind] = (resamples[:, column], resamples[:, 0], pairs)
    return [_comparison(measure, by_class) for measure, by_class in totals.items()]


def _quadratic_forms(matrix: Tensor, times: Tensor) -> NDArray[np.float64]:
    """Return t' M t for the matrix M and each row t of `times`."""
    found: NDArray[np.float64] = ((times @ matrix).double() * times).sum(1).numpy()
    return found


def _comparison(
    measure: str, sums: dict[str, tuple[NDArray[np.float64], NDArray[np.float64], int]]
) -> TopicComparison:
    """Return the comparison from the sum of similarities, total weight and number of pairs of each class."""
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
    """Return the first number, with an interval from the quantiles of the other numbers.

    The interval is NaN if one of them is NaN.
    """
    resamples = numbers[1:]
    if not len(resamples) or np.isnan(resamples).any():
        return Interval(float(numbers[0]), np.nan, np.nan)
    low, high = np.quantile(resamples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(numbers[0]), float(low), float(high))
