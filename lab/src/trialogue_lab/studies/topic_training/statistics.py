"""Statistics of the study about transformers that are trained on documents of a topic model.

Entries of a trained matrix, and attention weights, belong to pairs of words. A pair is of the same word, of the same
topic, or of different topics. Losses are "CE" (cross-entropy) or "squared". Statistics have one number per seed, that
is, per set of documents.
"""

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
    """Return measurements of one kind, indexed by seed.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows.
        **values: Values of columns that select the rows.

    Raises:
        NoRows: If no row matches.
    """
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
    """Return a measured value of a training, for example the mean of a class of entries of the trained matrix.

    Args:
        rows: Measured rows of a run, by kind.
        name: Name of the training, for example "with L2".
        column: Name of the value, for example "block", the mean entry of different words of the same topic.
        loss: "CE" or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One value per seed.
    """
    return _training(rows, name, loss, optimizer, rate)[column].astype(float)


@trainings
def progress(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return how far a training has got, relative to Adam with a learning rate of 0.01.

    Progress is the difference between the loss of the best constant prediction and the test loss of the training. It is
    divided by the same difference for Adam.

    Args:
        rows: Measured rows of a run, by kind.
        name: Name of the training, for example "with L2".
        loss: "CE" or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One ratio per seed.
    """
    return _progress(rows, name, loss, optimizer, rate)


@trainings
def contrast(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return how far entries of the same topic are above entries of different topics, in standard deviations.

    The standard deviation is over entries of different topics. Diagonal entries are omitted.

    Args:
        rows: Measured rows of a run, by kind.
        name: Name of the training, for example "with L2".
        loss: "CE" or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One contrast per seed.

    Raises:
        NoRows: If the loss of a training has hardly fallen below the loss of a constant prediction.
    """
    table = _trained_rows(rows, name, loss, optimizer, rate)
    return (table.block - table.other) / table.other_std


@trainings
def prominence(
    rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE
) -> "Series[float]":
    """Return the mean entry of words of the same topic divided by the absolute mean entry of different topics.

    Diagonal entries count as entries of the same topic.

    Args:
        rows: Measured rows of a run, by kind.
        name: Name of the training, for example "with L2".
        loss: "CE" or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One ratio per seed.

    Raises:
        NoRows: If the loss of a training has hardly fallen below the loss of a constant prediction.
    """
    table = _trained_rows(rows, name, loss, optimizer, rate)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return how clearly the entries of words of the same topic stand out from the entries of different topics.

    The mean entry of the same topic, including the diagonal, is divided by the smaller of two thresholds. These are ten
    times the absolute mean entry of different topics, and five standard deviations of these entries.

    Args:
        rows: Measured rows of a run, by kind.
        name: Name of the training, for example "with L2".
        loss: "CE" or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One ratio per seed. The entries stand out if it is above 1.

    Raises:
        NoRows: If the loss of a training has hardly fallen below the loss of a constant prediction.
    """
    table = _trained_rows(rows, name, loss, optimizer, rate)
    return table.in_topic / np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)


@trainings
def gap(rows: Rows, name: str, loss: str) -> "Series[float]":
    """Return the relative increase of the test loss if only a part of the network is trained, by Adam.

    Args:
        rows: Measured rows of a run, by kind.
        name: "embedding alone", compared with the whole network, or "without L2" (values under uniform attention),
            compared with values and attention.
        loss: "CE" or "squared".

    Returns:
        One ratio minus 1 per seed.
    """
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
    """Return the mean attention weight of a class of word pairs, scaled to documents of 100 words.

    Args:
        rows: Measured rows of a run, by kind.
        column: Class of the pairs: "same_word", "same_topic" or "other".
        optimizer: "adam" or "sgd".
        rate: Learning rate.
        name: "with values" if value matrices are trained too, or "diagonal values" for fixed ones.
        shift: Number of words by which topics are shifted, 0 or 4. The shift of 4 reproduces the authors' analysis.
        loss: "CE" or "squared".

    Returns:
        One mean per seed.
    """
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
    """Return the log ratio of the mean attention weights of two classes of word pairs.

    Args:
        rows: Measured rows of a run, by kind.
        first: Class in the numerator: "same_word", "same_topic" or "other".
        second: Class in the denominator.
        optimizer: "adam" or "sgd".
        rate: Learning rate.
        name: "with values" if value matrices are trained too, or "diagonal values" for fixed ones.
        shift: Number of words by which topics are shifted, 0 or 4. The shift of 4 reproduces the authors' analysis.

    Returns:
        One log ratio per seed.

    Raises:
        NoRows: If the loss of a training has hardly fallen below the loss of a constant prediction.
    """
    _trained_rows(rows, name, "CE", optimizer, rate)
    table = _attended(rows, optimizer, rate, name, shift)
    return (table[first] / table[second]).map(math.log)


@trainings
def ordered(rows: Rows) -> Counts:
    """Count the settings of Table 2.1 in which attention is ordered by topic.

    Mean attention must be larger to the same word than to other words of its topic, and larger to these than to other
    topics. Trainings whose loss has hardly fallen below the loss of a constant prediction are omitted.

    Returns:
        Settings in this order and all settings, per seed.
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
    """Return the growth of a weight norm relative to the growth of the norm of the value matrix, early in training.

    The early part ends when the norm of the value matrix reaches 40 % of its final value.

    Args:
        rows: Measured rows of a run, by kind.
        matrix: Name of the matrix, for example "keys" for W^K.
        name: Name of the training, "one layer" or "four layers".
        optimizer: "adam" or "sgd".

    Returns:
        One ratio per seed.
    """
    return _by_seed(rows, name, optimizer, lambda table: _growth(table, matrix))


@trainings
def slowing(rows: Rows, name: str = "one layer", optimizer: str = "sgd") -> "Series[float]":
    """Return how much more slowly the norm of the value matrix grows in the second stage of training than in the first.

    The first stage ends when the norm of the key matrix has grown by half.

    Args:
        rows: Measured rows of a run, by kind.
        name: Name of the training, "one layer" or "four layers".
        optimizer: "adam" or "sgd".

    Returns:
        One ratio of growths per step, second over first stage, for each seed. It is 1 without a second stage.
    """
    return _by_seed(rows, name, optimizer, _slowing)


@trainings
def growth(rows: Rows, matrix: str, name: str = "one layer", optimizer: str = "sgd") -> "Series[float]":
    """Return the ratio of the final to the initial norm of a weight matrix.

    Args:
        rows: Measured rows of a run, by kind.
        matrix: Name of the matrix, for example "keys" or "values".
        name: Name of the training, "one layer" or "four layers".
        optimizer: "adam" or "sgd".

    Returns:
        One ratio per seed.
    """
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
