"""Statistics of the study about trained value matrices of a transformer on documents of a topic model.

Entries of the matrix belong to pairs of words, of the same topic or of different topics. Statistics have one number per
seed, that is, per set of documents.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.topic_training.statistics import DEVIATIONS, FACTOR, rows_by_seed

trainings = Replication("training", "seeds")


@trainings
def entries(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measured value of a trained value matrix, for example the mean of a class of its entries.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Name of the training, for example "with L2".
        column: Name of the value, for example "in_topic", the mean entry of words of the same topic.

    Returns:
        One value per seed.
    """
    return rows_by_seed(rows, "training", name=arm)[column].astype(float)


@trainings
def prominence(rows: Rows, arm: str) -> "Series[float]":
    """Return the mean entry of words of the same topic divided by the absolute mean entry of different topics.

    Diagonal entries count as entries of the same topic.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Name of the training, for example "with L2".

    Returns:
        One ratio per seed.
    """
    table = rows_by_seed(rows, "training", name=arm)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, arm: str) -> "Series[float]":
    """Return how clearly the entries of words of the same topic stand out from the entries of different topics.

    The mean entry of the same topic, including the diagonal, is divided by the smaller of two thresholds. These are ten
    times the absolute mean entry of different topics, and five standard deviations of these entries.

    Args:
        rows: Measured rows of a run, by kind.
        arm: Name of the training, for example "with L2".

    Returns:
        One ratio per seed. The entries stand out if it is above 1.
    """
    table = rows_by_seed(rows, "training", name=arm)
    return table.in_topic / np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)
