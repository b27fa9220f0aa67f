"""Statistics of the study about trained value matrices of a transformer on documents of a topic model.

A topic is a group of words that occur in the same documents. Entries of the matrix belong to pairs of words, of the
same topic or of different topics. Statistics have one number per seed, that is, per set of documents.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.topic_training.statistics import DEVIATIONS, FACTOR, select_rows_by_seed

trainings = Replication("training", "seeds")


@trainings
def entries(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measurement of a value matrix that is trained on documents of a topic model.

    The matrix has one entry per pair of words. A topic is a group of words.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the training, for example "with L2" for an L2 penalty.
        column: Name of the column, for example "in_topic", the mean entry of words of the same topic.

    Returns:
        One value per seed of the documents.
    """
    return select_rows_by_seed(rows, "training", name=arm)[column].astype(float)


@trainings
def prominence(rows: Rows, arm: str) -> "Series[float]":
    """Return the mean entry of a trained value matrix for words of the same topic, relative to different topics.

        ratio = (mean entry of the same topic) / |mean entry of different topics|

    The value matrix is trained on a topic model, and has one entry per pair of words. Diagonal entries count as the
    same topic.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the training, for example "with L2" for an L2 penalty.

    Returns:
        One ratio per seed of the documents.
    """
    table = select_rows_by_seed(rows, "training", name=arm)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, arm: str) -> "Series[float]":
    """Return how clearly the entries of a trained value matrix for words of the same topic stand out from all others.

        ratio = (mean entry of the same topic) / min(10 |m|, 5 s)

    m and s are the mean and the standard deviation of the entries of different topics. The value matrix is
    trained on documents of a topic model, and has one entry per pair of words.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Name of the training, for example "with L2" for an L2 penalty.

    Returns:
        One ratio per seed of the documents. Above 1, the entries stand out.
    """
    table = select_rows_by_seed(rows, "training", name=arm)
    return table.in_topic / np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)
