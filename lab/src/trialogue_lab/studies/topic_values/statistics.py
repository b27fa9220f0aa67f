"""Statistics of the study, one number per set of documents."""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.studies.topic_training.statistics import DEVIATIONS, FACTOR, rows_by_seed

trainings = Replication("training", "seeds")


@trainings
def entries(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a column of the rows about a trained matrix, such as the mean entry within topics."""
    return rows_by_seed(rows, "training", name=arm)[column].astype(float)


@trainings
def prominence(rows: Rows, arm: str) -> "Series[float]":
    """Return the mean entry within topics, including the diagonal, divided by the absolute mean entry elsewhere."""
    table = rows_by_seed(rows, "training", name=arm)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, arm: str) -> "Series[float]":
    """Return the mean entry within topics divided by the smaller of two thresholds.

    The thresholds are ten times the absolute mean entry, and five standard deviations of the entries, for words of
    different topics.
    """
    table = rows_by_seed(rows, "training", name=arm)
    return table.in_topic / np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)
