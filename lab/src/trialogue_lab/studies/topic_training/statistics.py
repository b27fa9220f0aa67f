"""Statistics of the study, one number per set of documents."""

import math
from collections.abc import Callable

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows
from trialogue_lab.studies.topic_training.config import FIGURE_RATE, SETTINGS

trainings = Replication("training", "seeds")

REACHED = 0.4
"""Share of the final norm of the values that ends the early part of a training"""
MOVED = 0.1
"""Smallest progress of a training on which claims are tested (see `progress`)"""
FACTOR, DEVIATIONS = 10.0, 5.0
"""Required ratio of same-topic entries to the mean, or to the standard deviation, of other entries"""


def rows_by_seed(rows: Rows, kind: str, **values: object) -> DataFrame:
    """Return the rows of a kind with the given values, indexed by seed. Raises `NoRows` if no row matches."""
    table = rows.where(kind, **values)
    if table.empty:
        raise NoRows(f"no rows of the kind {kind!r} with {values}")
    return table.set_index("seed")


def _training(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> DataFrame:
    return rows_by_seed(rows, "training", name=name, loss=loss, optimizer=optimizer, rate=rate)


def _attended(
    rows: Rows, optimizer: str, rate: float, name: str = "with values", shift: int = 0, loss: str = "CE"
) -> DataFrame:
    return rows_by_seed(rows, "attention", name=name, optimizer=optimizer, rate=rate, shift=shift, loss=loss)


@trainings
def entries(
    rows: Rows, name: str, column: str, loss: str, optimizer: str, rate: float = FIGURE_RATE
) -> "Series[float]":
    """Return a column of the rows about a training, such as the mean of a class of matrix entries."""
    return _training(rows, name, loss, optimizer, rate)[column].astype(float)


@trainings
def progress(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return the progress of a training.

    This is the fall of its test loss below the loss of the best constant prediction, divided by the same fall for Adam
    at a learning rate of 0.01.
    """
    return _progress(rows, name, loss, optimizer, rate)


@trainings
def contrast(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return the difference of mean entries, same topic (off the diagonal) minus other topics, in standard deviations.

    The standard deviation is over entries of other topics. Raises `NoRows` if a training has made no progress.
    """
    table = _trained_rows(rows, name, loss, optimizer, rate)
    return (table.block - table.other) / table.other_std


@trainings
def prominence(
    rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE
) -> "Series[float]":
    """Return the mean same-topic entry, including the diagonal, divided by the absolute mean entry of other topics.

    Raises `NoRows` if a training has made no progress.
    """
    table = _trained_rows(rows, name, loss, optimizer, rate)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return the mean same-topic entry divided by the smaller of two thresholds.

    The thresholds are ten times the absolute mean entry of other topics, and five standard deviations of these entries.
    Raises `NoRows` if a training has made no progress.
    """
    table = _trained_rows(rows, name, loss, optimizer, rate)
    return table.in_topic / np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)


@trainings
def gap(rows: Rows, name: str, loss: str) -> "Series[float]":
    """Return the relative excess of the test loss of training one part over training the whole network, by Adam."""
    joint = {"embedding alone": "all", "without L2": "with values"}[name]
    part, full = (_training(rows, each, loss, "adam", FIGURE_RATE).test for each in (name, joint))
    return part / full - 1


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
    """Return the mean attention to a class of word pairs, scaled to documents of 100 words."""
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
    """Return the log ratio of attention to two classes. Raises `NoRows` if a training has made no progress."""
    _trained_rows(rows, name, "CE", optimizer, rate)
    table = _attended(rows, optimizer, rate, name, shift)
    return (table[first] / table[second]).map(math.log)


@trainings
def ordered(rows: Rows) -> Counts:
    """Return the share of settings of Table 2.1 with attention same word > same topic > other topics.

    Settings in which the training has made no progress are left out.
    """
    in_order, moved = [], []
    for optimizer, rate in SETTINGS:
        table = _attended(rows, optimizer, rate)
        has_moved = _progress(rows, "with values", "CE", optimizer, rate) >= MOVED
        in_order.append(has_moved & (table.same_word > table.same_topic) & (table.same_topic > table.other))
        moved.append(has_moved)
    return Counts(DataFrame(in_order).sum(), DataFrame(moved).sum())


@trainings
def early_growth(
    rows: Rows, matrix: str = "keys", name: str = "one layer", optimizer: str = "sgd"
) -> "Series[float]":
    """Return the growth of |W^K| divided by the growth of |W^V|, until |W^V| reaches 40 % of its final norm."""
    return _by_seed(rows, name, optimizer, lambda table: _growth(table, matrix))


@trainings
def slowing(rows: Rows, name: str = "one layer", optimizer: str = "sgd") -> "Series[float]":
    """Return the ratio of the growth of |W^V| per step, second stage over first stage.

    The first stage ends when |W^K| has grown by half. Without a second stage, the ratio is 1.
    """
    return _by_seed(rows, name, optimizer, _slowing)


@trainings
def growth(rows: Rows, matrix: str, name: str = "one layer", optimizer: str = "sgd") -> "Series[float]":
    """Return the final norm of a matrix divided by its initial norm."""
    return _by_seed(
        rows, name, optimizer, lambda table: float(table[matrix].iloc[-1] / table[matrix].iloc[0])
    )


def _progress(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> "Series[float]":
    table = _training(rows, name, loss, optimizer, rate)
    adam = _training(rows, name, loss, "adam", FIGURE_RATE)
    words = sum(str(column).startswith("word_") for column in rows["matrix"])
    # The smallest loss of a constant prediction, which biases alone can reach.
    constant = math.log(words) if loss == "CE" else 1 - 1 / words
    return (constant - table.test) / (constant - adam.test)


def _trained_rows(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> DataFrame:
    """Return the rows of trainings. Raises `NoRows` if one has made no progress. Diverged trainings are included."""
    found = _progress(rows, name, loss, optimizer, rate)
    unmoved = int((found < MOVED).sum())
    if unmoved:
        raise NoRows(
            f"{unmoved} of {len(found)} trainings have made no progress: their loss falls below that of a constant by "
            f"{found.median():.2%} (median) of the fall under Adam at {FIGURE_RATE:g}"
        )
    return _training(rows, name, loss, optimizer, rate)


def _by_seed(
    rows: Rows, name: str, optimizer: str, statistic: Callable[[DataFrame], float]
) -> "Series[float]":
    table = rows_by_seed(rows, "stage", name=name, optimizer=optimizer)
    return Series({seed: statistic(part.sort_values("step")) for seed, part in table.groupby("seed")})


def _growth(table: DataFrame, matrix: str) -> float:
    reached = int(np.argmax((table["values"] >= REACHED * table["values"].iloc[-1]).to_numpy()))
    growths = [float(table[each].iloc[reached] - table[each].iloc[0]) for each in (matrix, "values")]
    return growths[0] / growths[1] if growths[1] else float("nan")


def _slowing(table: DataFrame) -> float:
    has_grown = (table["keys"] >= 1.5 * table["keys"].iloc[0]).to_numpy()
    end = int(np.argmax(has_grown)) if has_grown.any() else len(table) - 1
    if not 0 < end < len(table) - 1:
        return 1.0
    sizes, steps = table["values"].to_numpy(), table["step"].to_numpy()
    first = (sizes[end] - sizes[0]) / (steps[end] - steps[0])
    return float((sizes[-1] - sizes[end]) / (steps[-1] - steps[end]) / first)
