"""Quantities of the study, one number per set of documents."""

import math
from collections.abc import Callable

import numpy as np
from pandas import DataFrame, Series

from trialogue.ledger import Counts, NoRows, Replication, Rows, shares_of
from trialogue.studies.topic_training.config import RATES

trainings = Replication("training", "seeds")

REACHED = 0.4
"""The share of its final norm at which the values have grown"""


def _of(rows: Rows, kind: str, **values: object) -> DataFrame:
    table = rows.where(kind, **values)
    if table.empty:
        raise NoRows(f"no rows of the kind {kind!r} with {values}")
    return table.set_index("seed")


@trainings
def entries(
    rows: Rows, name: str, column: str, loss: str, optimizer: str, rate: float = 0.01
) -> "Series[float]":
    """A number of a training's matrix."""
    return _of(rows, "training", name=name, loss=loss, optimizer=optimizer, rate=rate)[column].astype(float)


@trainings
def contrast(rows: Rows, name: str, loss: str, optimizer: str) -> "Series[float]":
    """Same topic, off the diagonal, less other topics, over the deviation of entries of other topics."""
    table = _of(rows, "training", name=name, loss=loss, optimizer=optimizer, rate=0.01)
    return (table.block - table.other) / table.other_std


@trainings
def prominence(rows: Rows, name: str, loss: str, optimizer: str) -> "Series[float]":
    """The mean of same-topic entries, diagonal included, over the size of the mean of others."""
    table = _of(rows, "training", name=name, loss=loss, optimizer=optimizer, rate=0.01)
    return table.in_topic / table.other.abs()


@trainings
def gap(rows: Rows, name: str, loss: str) -> "Series[float]":
    """The relative excess of the test loss where only a part is trained, over that where all of it is; by Adam."""
    joint = {"embedding alone": "all", "without L2": "with values"}[name]
    alone, whole = (
        _of(rows, "training", name=each, loss=loss, optimizer="adam", rate=0.01).test
        for each in (name, joint)
    )
    return alone / whole - 1


@trainings
def attention(
    rows: Rows,
    column: str,
    optimizer: str,
    rate: float,
    name: str = "with values",
    shift: int = 0,
    loss: str = "CE",
) -> "Series[float]":
    """Mean attention to a class of pairs, as in documents of 100 words."""
    return _of(rows, "attention", name=name, optimizer=optimizer, rate=rate, shift=shift, loss=loss)[column]


@trainings
def over(
    rows: Rows,
    first: str,
    second: str,
    optimizer: str,
    rate: float,
    name: str = "with values",
    shift: int = 0,
) -> "Series[float]":
    """The logarithm of the ratio of attention to two classes."""
    table = _of(rows, "attention", name=name, optimizer=optimizer, rate=rate, shift=shift, loss="CE")
    return (table[first] / table[second]).map(math.log)


@trainings
def ordered(rows: Rows) -> Counts:
    """The share of the settings of Table 2.1 in which same word > same topic > other topics."""
    table = _of(rows, "attention", name="with values", shift=0, loss="CE")
    settings = [(optimizer, rate) for optimizer, rates in RATES.items() for rate in rates]
    inside = table[[pair in settings for pair in zip(table.optimizer, table.rate, strict=True)]]
    right = (inside.same_word > inside.same_topic) & (inside.same_topic > inside.other)
    return shares_of(right.astype(float).groupby("seed").mean(), len(settings))


@trainings
def early_growth(
    rows: Rows, matrix: str = "keys", name: str = "one layer", optimizer: str = "sgd"
) -> "Series[float]":
    """The growth of W^K over that of W^V until |W^V| has reached 40 % of its last norm, both in norm."""
    return _each(rows, name, optimizer, lambda table: _growth(table, matrix))


@trainings
def slowing(rows: Rows, name: str = "one layer", optimizer: str = "sgd") -> "Series[float]":
    """The growth of |W^V| a step in the second stage over that in the first, which ends as |W^K| has grown by half."""
    return _each(rows, name, optimizer, _slowing)


@trainings
def growth(rows: Rows, matrix: str, name: str = "one layer", optimizer: str = "sgd") -> "Series[float]":
    """The last norm over the first."""
    return _each(rows, name, optimizer, lambda table: float(table[matrix].iloc[-1] / table[matrix].iloc[0]))


def _each(rows: Rows, name: str, optimizer: str, statistic: Callable[[DataFrame], float]) -> "Series[float]":
    table = _of(rows, "stage", name=name, optimizer=optimizer)
    return Series({seed: statistic(part.sort_values("step")) for seed, part in table.groupby("seed")})


def _growth(table: DataFrame, matrix: str) -> float:
    reached = int(np.argmax((table["values"] >= REACHED * table["values"].iloc[-1]).to_numpy()))
    grown = [float(table[each].iloc[reached] - table[each].iloc[0]) for each in (matrix, "values")]
    return grown[0] / grown[1] if grown[1] else float("nan")


def _slowing(table: DataFrame) -> float:
    begun = (table["keys"] >= 1.5 * table["keys"].iloc[0]).to_numpy()
    end = int(np.argmax(begun)) if begun.any() else len(table) - 1
    if not 0 < end < len(table) - 1:
        return 1.0
    sizes, steps = table["values"].to_numpy(), table["step"].to_numpy()
    first = (sizes[end] - sizes[0]) / (steps[end] - steps[0])
    return float((sizes[-1] - sizes[end]) / (steps[-1] - steps[end]) / first)
