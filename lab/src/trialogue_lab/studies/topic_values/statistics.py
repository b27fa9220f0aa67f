"""Statistics of the study, one number per set of documents."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows
from trialogue_lab.studies.topic_training.statistics import DEVIATIONS, FACTOR

trainings = Replication("training", "seeds")


@trainings
def entries(rows: Rows, arm: str, column: str) -> "Series[float]":
    """A column of the row of a trained matrix, such as the mean entry within topics."""
    return _trained(rows, arm)[column].astype(float)


@trainings
def prominence(rows: Rows, arm: str) -> "Series[float]":
    """Mean entry within topics, diagonal included, divided by the size of the mean entry elsewhere."""
    table = _trained(rows, arm)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, arm: str) -> "Series[float]":
    """Mean entry within topics, divided by ten times the mean elsewhere or by five deviations, whichever is smaller.

    "Elsewhere" are the entries for words of different topics.
    """
    table = _trained(rows, arm)
    return table.in_topic / np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)


def _trained(rows: Rows, arm: str) -> DataFrame:
    table = rows.where("training", name=arm)
    if table.empty:
        raise NoRows(f"no training {arm!r}")
    return table.set_index("seed")
