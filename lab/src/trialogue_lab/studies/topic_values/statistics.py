"""Statistics of the study about trained value matrices of a transformer on documents of a topic model.

A topic is a group of words that occur in the same documents. Entries of the matrix belong to pairs of words, of the
same topic or of different topics. Statistics have one number per seed, that is, per set of documents.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.topic_training.statistics import DEVIATIONS, FACTOR, rows_by_seed

trainings = Replication("training", "seeds")


@trainings
def entries(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measured value of a trained value matrix.

    It is trained on documents of a topic model. The entries of the matrix belong to pairs of words. A topic is a group
    of words.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        arm: Name of the training, for example "with L2" for an L2 penalty.
        column: Name of the value, for example "in_topic", the mean entry of words of the same topic.

    Returns:
        One value per seed of the documents.
    """
    return rows_by_seed(rows, "training", name=arm)[column].astype(float)


@trainings
def prominence(rows: Rows, arm: str) -> "Series[float]":
    """Return the ratio of mean entries of a value matrix, same over different topics.

    The entries belong to pairs of words of a topic model. Diagonal entries count as the same topic. The denominator is
    an absolute value.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        arm: Name of the training, for example "with L2" for an L2 penalty.

    Returns:
        One ratio per seed of the documents.
    """
    table = rows_by_seed(rows, "training", name=arm)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, arm: str) -> "Series[float]":
    """Return how clearly entries of the same topic exceed entries of different topics.

    The entries belong to a trained value matrix and to pairs of words. The mean entry of the same topic, including the
    diagonal, is divided by the smaller of two thresholds. They are ten times the absolute mean, and five standard
    deviations, of the entries of different topics.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        arm: Name of the training, for example "with L2" for an L2 penalty.

    Returns:
        One ratio per seed of the documents. A ratio above 1 means that a threshold is exceeded.
    """
    table = rows_by_seed(rows, "training", name=arm)
    return table.in_topic / np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)
