"""Statistics of the study: numbers per distribution and its trainings, and largest values over networks."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact
from trialogue_lab.studies.interaction_order.config import DEPTHS

trainings = Replication("training", "seeds")
large_trainings = Replication("training", "large_seeds")
FORMS = dict(zip(DEPTHS, ("two", "three", "four"), strict=True))
"""The bodies that networks with this number of layers can learn according to the document."""


def _trainings_with(rows: Rows, layers: int) -> DataFrame:
    return rows.where("training", layers=layers).set_index("seed")


@trainings
def loss(rows: Rows, layers: int) -> "Series[float]":
    """Return the final losses of networks with this number of layers, in nats per token."""
    return _trainings_with(rows, layers).loss


@trainings
def bound(rows: Rows, form: str) -> "Series[float]":
    """Return the lowest losses of a form: "two" or "three" bodies in product form, or "four", the entropy."""
    return rows["law"].set_index("seed")[form]


@trainings
def excess(rows: Rows, layers: int) -> "Series[float]":
    """Return the final losses above the bound that the document names for this number of layers."""
    table = _trainings_with(rows, layers)
    return table.loss - table[FORMS[layers]]


@trainings
def standing(rows: Rows, level: int) -> "Series[float]":
    """Return the plateau ratios of three layers at the loss of `level` layers."""
    return _trainings_with(rows, 3)[f"stay_{level}"]


@trainings
def in_order(rows: Rows) -> Counts:
    """Return whether the last of three layers begins to learn first, then the middle one, then the first."""
    table = _trainings_with(rows, 3)
    return counts_from_shares(
        ((table.onset_3 < table.onset_2) & (table.onset_2 < table.onset_1)).astype(float), 1
    )


@trainings
def last_first(rows: Rows, layers: int = 3) -> Counts:
    """Return whether the last layer begins to learn before all others."""
    table = _trainings_with(rows, layers)
    others = table[[f"onset_{layer}" for layer in range(1, layers)]].min(axis=1)
    return counts_from_shares((table[f"onset_{layers}"] < others).astype(float), 1)


@trainings
def middle_before_first(rows: Rows) -> Counts:
    """Return whether the middle of three layers begins to learn before the first."""
    table = _trainings_with(rows, 3)
    return counts_from_shares((table.onset_2 < table.onset_1).astype(float), 1)


@trainings
def pairs(rows: Rows, column: str) -> "Series[float]":
    """Return a column of one layer on two-body distributions."""
    return rows["pairs"].set_index("seed")[column]


@trainings
def pair_excess(rows: Rows, network: str) -> "Series[float]":
    """Return the loss above the entropy of a "factored" or "standard" layer on two bodies, in nats."""
    table = rows["pairs"].set_index("seed")
    return table[network] - table.entropy


@large_trainings
def large_loss(rows: Rows, layers: int) -> "Series[float]":
    """Return the final losses on distributions of the document's size, in nats per token."""
    table = rows.where("large-curve", layers=layers).sort_values("step")
    return table.groupby("seed").loss.last()


@large_trainings
def large_bound(rows: Rows, form: str) -> "Series[float]":
    """Return the losses of trained product forms ("two", "three") and of the distribution itself ("four")."""
    return rows["large-law"].set_index("seed")[form]


@exact
def exchange_exponent(rows: Rows) -> float:
    """Return the power of the initial scale with which the change by the exchange of two layers vanishes."""
    means = np.log(rows["exchange"].change).groupby(rows["exchange"].scale).mean()
    return float(np.polyfit(np.log(means.index), means, 1)[0])
