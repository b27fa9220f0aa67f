"""Quantities of the study: per law with its trainings, and worst cases over networks."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, exact, shares_of
from trialogue_lab.studies.interaction_order.config import DEPTHS

trainings = Replication("training", "seeds")
large_trainings = Replication("training", "large_seeds")
FORMS = dict(zip(DEPTHS, ("two", "three", "four"), strict=True))
"""The bound that networks of so many layers are said to reach."""


def _of(rows: Rows, layers: int) -> DataFrame:
    return rows.where("training", layers=layers).set_index("seed")


@trainings
def loss(rows: Rows, layers: int) -> "Series[float]":
    """The final loss of networks of so many layers, in nats per token."""
    return _of(rows, layers).loss


@trainings
def bound(rows: Rows, form: str) -> "Series[float]":
    """The least loss of a form: "two" or "three" bodies in product form, or "four", the law's own entropy."""
    return rows["law"].set_index("seed")[form]


@trainings
def excess(rows: Rows, layers: int) -> "Series[float]":
    """The final loss of networks of so many layers above the bound that they are said to reach."""
    table = _of(rows, layers)
    return table.loss - table[FORMS[layers]]


@trainings
def standing(rows: Rows, level: int) -> "Series[float]":
    """How long three layers stand at the loss of one or two, over the steps of the fall to it."""
    return _of(rows, 3)[f"stay_{level}"]


@trainings
def in_order(rows: Rows) -> Counts:
    """Whether the last of three layers sets out before the middle one, and that before the first."""
    table = _of(rows, 3)
    return shares_of(((table.onset_3 < table.onset_2) & (table.onset_2 < table.onset_1)).astype(float), 1)


@trainings
def last_first(rows: Rows, layers: int = 3) -> Counts:
    """Whether the last layer sets out before all others."""
    table = _of(rows, layers)
    others = table[[f"onset_{layer}" for layer in range(1, layers)]].min(axis=1)
    return shares_of((table[f"onset_{layers}"] < others).astype(float), 1)


@trainings
def middle_before_first(rows: Rows) -> Counts:
    """Whether the middle of three layers sets out before the first."""
    table = _of(rows, 3)
    return shares_of((table.onset_2 < table.onset_1).astype(float), 1)


@trainings
def pairs(rows: Rows, column: str) -> "Series[float]":
    """A number of one layer on a law of two bodies."""
    return rows["pairs"].set_index("seed")[column]


@trainings
def pair_excess(rows: Rows, network: str) -> "Series[float]":
    """The loss of one "factored" or "standard" layer on a law of two bodies above the entropy, in nats."""
    table = rows["pairs"].set_index("seed")
    return table[network] - table.entropy


@large_trainings
def large_loss(rows: Rows, layers: int) -> "Series[float]":
    """The final loss of networks of so many layers on a law of the document's size, in nats per token."""
    table = rows.where("large-curve", layers=layers).sort_values("step")
    return table.groupby("seed").loss.last()


@large_trainings
def large_bound(rows: Rows, form: str) -> "Series[float]":
    """The loss of a form on such a law: "two" or "three" bodies in product form, trained, or "four", the law itself."""
    return rows["large-law"].set_index("seed")[form]


@exact
def exchange_exponent(rows: Rows) -> float:
    """With which power of the initial scale the change vanishes, where the first two of three layers are exchanged."""
    means = np.log(rows["exchange"].change).groupby(rows["exchange"].scale).mean()
    return float(np.polyfit(np.log(means.index), means, 1)[0])
