"""Quantities of the study, one number per set of documents."""

import math
from collections.abc import Callable

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows
from trialogue_lab.studies.topic_training.config import FIGURE_RATE, SETTINGS

trainings = Replication("training", "seeds")

REACHED = 0.4
"""The share of its final norm at which the values have grown"""
MOVED = 0.1
"""How far a training must have come to say anything, of how far below the loss of a constant Adam's at 0.01 comes"""
FACTOR, DEVIATIONS = 10.0, 5.0
"""What entries within a topic are to be of the mean of others, or of their deviation"""


def _of(rows: Rows, kind: str, **values: object) -> DataFrame:
    table = rows.where(kind, **values)
    if table.empty:
        raise NoRows(f"no rows of the kind {kind!r} with {values}")
    return table.set_index("seed")


def _training(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> DataFrame:
    return _of(rows, "training", name=name, loss=loss, optimizer=optimizer, rate=rate)


def _attended(
    rows: Rows, optimizer: str, rate: float, name: str = "with values", shift: int = 0, loss: str = "CE"
) -> DataFrame:
    return _of(rows, "attention", name=name, optimizer=optimizer, rate=rate, shift=shift, loss=loss)


@trainings
def entries(
    rows: Rows, name: str, column: str, loss: str, optimizer: str, rate: float = FIGURE_RATE
) -> "Series[float]":
    """A number of a training's matrix."""
    return _training(rows, name, loss, optimizer, rate)[column].astype(float)


@trainings
def progress(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """How far the test loss is below that of the constant that knows no document, over how far Adam's at 0.01 is."""
    return _progress(rows, name, loss, optimizer, rate)


@trainings
def contrast(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Same topic, off the diagonal, less other topics, over the deviation of entries of other topics.

    None where a training has not moved.
    """
    table = _moved(rows, name, loss, optimizer, rate)
    return (table.block - table.other) / table.other_std


@trainings
def prominence(
    rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE
) -> "Series[float]":
    """The mean of same-topic entries, diagonal included, over the size of the mean of others.

    None where a training has not moved.
    """
    table = _moved(rows, name, loss, optimizer, rate)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """The mean of same-topic entries over ten times that of others, or over five of their deviations: the larger.

    None where a training has not moved.
    """
    table = _moved(rows, name, loss, optimizer, rate)
    least = np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)
    return table.in_topic / least


@trainings
def gap(rows: Rows, name: str, loss: str) -> "Series[float]":
    """The relative excess of the test loss where only a part is trained, over that where all of it is; by Adam."""
    joint = {"embedding alone": "all", "without L2": "with values"}[name]
    alone, whole = (_training(rows, each, loss, "adam", FIGURE_RATE).test for each in (name, joint))
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
    return _attended(rows, optimizer, rate, name, shift, loss)[column]


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
    """The logarithm of the ratio of attention to two classes; none where a training has not moved."""
    _moved(rows, name, "CE", optimizer, rate)
    table = _attended(rows, optimizer, rate, name, shift)
    return (table[first] / table[second]).map(math.log)


@trainings
def ordered(rows: Rows) -> Counts:
    """The share of the settings of Table 2.1 in which same word > same topic > other topics.

    Of those in which the training has moved.
    """
    right, moved = [], []
    for optimizer, rate in SETTINGS:
        table = _attended(rows, optimizer, rate)
        came = _progress(rows, "with values", "CE", optimizer, rate) >= MOVED
        right.append(came & (table.same_word > table.same_topic) & (table.same_topic > table.other))
        moved.append(came)
    return Counts(DataFrame(right).sum(), DataFrame(moved).sum())


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


def _progress(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> "Series[float]":
    table = _training(rows, name, loss, optimizer, rate)
    adam = _training(rows, name, loss, "adam", FIGURE_RATE)
    words = sum(str(column).startswith("word_") for column in rows["matrix"])
    # The least loss of a prediction that is the same everywhere: biases come there without any matrix.
    constant = math.log(words) if loss == "CE" else 1 - 1 / words
    return (constant - table.test) / (constant - adam.test)


def _moved(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> DataFrame:
    """The rows of trainings that all have moved, or `NoRows`; one that diverged counts as it is."""
    came = _progress(rows, name, loss, optimizer, rate)
    still = int((came < MOVED).sum())
    if still:
        raise NoRows(
            f"{still} of {len(came)} trainings have hardly moved: below the loss of a constant by {came.median():.2%} "
            f"(the median) of what Adam's at {FIGURE_RATE:g} is"
        )
    return _training(rows, name, loss, optimizer, rate)


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
