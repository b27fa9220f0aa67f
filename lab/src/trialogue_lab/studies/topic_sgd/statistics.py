"""Statistics of the study about networks that SGD trains on documents of a topic model, with one number per seed.

A topic is a group of words that occur in the same documents. The statistics of value matrices are in `topic-values`.
"""

import math

from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.topic_training.statistics import select_rows_by_seed

trainings = Replication("training", "seeds")


@trainings
def attention(rows: Rows, arm: str, kind: str) -> "Series[float]":
    """Return the mean attention weight of a trained network over word pairs of one kind.

    Weights are rescaled to documents of 100 words.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the training.
        kind: Kind of word pairs: "same_word", "same_topic" (different words of one topic) or "other" (different
            topics).

    Returns:
        One mean per seed of the documents.
    """
    return _select_attention(rows, arm, kind)


@trainings
def over(rows: Rows, arm: str, first: str, second: str) -> "Series[float]":
    """Compare the attention of a trained network between two kinds of word pairs, as a log ratio of means.

        log(mean attention of the first kind / mean attention of the second kind)

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the training.
        first: Kind in the numerator, as in `attention`.
        second: Kind in the denominator.

    Returns:
        One natural log ratio per seed of the documents.
    """
    return (_select_attention(rows, arm, first) / _select_attention(rows, arm, second)).map(math.log)


@trainings
def fall(rows: Rows, arm: str) -> "Series[float]":
    """Return by how much a training lowers the test loss below the loss of the best constant prediction, in nats.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the training.

    Returns:
        One difference per seed of the documents.
    """
    words = rows.config["topics"] * rows.config["words_per_topic"]
    return math.log(words) - select_rows_by_seed(rows, "training", name=arm).test.astype(float)


def _select_attention(rows: Rows, arm: str, kind: str) -> "Series[float]":
    return select_rows_by_seed(rows, "training", name=arm)[f"attention_{kind}"].astype(float)
