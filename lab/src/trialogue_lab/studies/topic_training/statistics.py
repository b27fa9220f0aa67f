"""Statistics of the study about transformers that are trained on documents of a topic model.

A topic is a group of words that occur in the same documents. Entries of a trained matrix, and attention weights, belong
to pairs of words. The words of a pair are equal, of the same topic, or of different topics. Losses are "CE"
(cross-entropy) or "squared". Statistics have one number per seed, that is, per set of documents.
"""

import math
from collections.abc import Callable

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows
from trialogue_lab.studies.topic_training.config import FIGURE_RATE, SETTINGS

trainings = Replication("training", "seeds")

REACHED = 0.4
"""The early part of a training ends when the norm of the values reaches this share of its final value"""
MOVED = 0.1
"""Smallest `progress` of a training on which claims are tested"""
FACTOR, DEVIATIONS = 10.0, 5.0
"""Required ratio of same-topic entries to the mean, or to the standard deviation, of entries of different topics"""


def select_rows_by_seed(rows: Rows, kind: str, **values: object) -> DataFrame:
    """Select the measured rows of one kind, indexed by seed.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows, for example "training" or "attention".
        **values: Values of columns that select the rows.

    Raises:
        NoRows: If no row matches.
    """
    return rows.require(kind, **values).set_index("seed")


def _select_training(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> DataFrame:
    return select_rows_by_seed(rows, "training", name=name, loss=loss, optimizer=optimizer, rate=rate)


def _select_attention(
    rows: Rows, optimizer: str, rate: float, name: str = "with values", shift: int = 0, loss: str = "CE"
) -> DataFrame:
    return select_rows_by_seed(
        rows, "attention", name=name, optimizer=optimizer, rate=rate, shift=shift, loss=loss
    )


@trainings
def entries(
    rows: Rows, name: str, column: str, loss: str, optimizer: str, rate: float = FIGURE_RATE
) -> "Series[float]":
    """Return a measurement of a matrix of a transformer that is trained on documents of a topic model.

    The matrix has one entry per pair of words. A topic is a group of words.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        name: Name of the training, for example "with L2" for a value matrix that is trained with an L2 penalty.
        column: Name of the column, for example "block", the mean entry of different words of the same topic.
        loss: "CE" (cross-entropy) or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate (default: 0.01).

    Returns:
        One value per seed of the documents.
    """
    return _select_training(rows, name, loss, optimizer, rate)[column].astype(float)


@trainings
def progress(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return how much a training decreases the test loss of a transformer, relative to a training by Adam.

        progress = (loss of the best constant prediction) - (test loss of the trained network)

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        name: Name of the training, for example "with L2" for a value matrix that is trained with an L2
            penalty.
        loss: "CE" (cross-entropy) or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One ratio of progress (network / Adam with learning rate 0.01) per seed of the documents.
    """
    return _compute_progress(rows, name, loss, optimizer, rate)


@trainings
def contrast(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return how clearly a trained matrix separates words of the same topic from words of different topics.

        difference = (mean entry of the same topic - mean entry of different topics)
            / (standard deviation of the entries of different topics)

    The matrix has one entry per pair of words. It belongs to a transformer that is trained on documents of a topic
    model. Diagonal entries are omitted.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        name: Name of the training, for example "with L2" for a value matrix that is trained with an L2 penalty.
        loss: "CE" (cross-entropy) or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One number of standard deviations per seed of the documents.

    Raises:
        NoRows: If a training has made hardly any progress (see `progress`).
    """
    table = _select_trained_rows(rows, name, loss, optimizer, rate)
    return (table.block - table.other) / table.other_std


@trainings
def prominence(
    rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE
) -> "Series[float]":
    """Return the mean entry of a trained matrix for words of the same topic, relative to words of different topics.

        ratio = (mean entry of the same topic) / |mean entry of different topics|

    The matrix is trained on documents of a topic model, and has one entry per pair of words. Diagonal entries count as
    the same topic.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        name: Name of the training, for example "with L2" for a value matrix that is trained with an L2 penalty.
        loss: "CE" (cross-entropy) or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One ratio per seed of the documents.

    Raises:
        NoRows: If a training has made hardly any progress (see `progress`).
    """
    table = _select_trained_rows(rows, name, loss, optimizer, rate)
    return table.in_topic / table.other.abs()


@trainings
def standing(rows: Rows, name: str, loss: str, optimizer: str, rate: float = FIGURE_RATE) -> "Series[float]":
    """Return how clearly the entries of a trained matrix for words of the same topic stand out from all others.

        ratio = (mean entry of the same topic) / min(10 |m|, 5 s)

    m and s are the mean and the standard deviation of the entries of different topics. The matrix has one entry per
    pair of words. It belongs to a transformer that is trained on documents of a topic model.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        name: Name of the training, for example "with L2" for a value matrix that is trained with an L2
            penalty.
        loss: "CE" (cross-entropy) or "squared".
        optimizer: "adam" or "sgd".
        rate: Learning rate.

    Returns:
        One ratio per seed of the documents. Above 1, the entries stand out.

    Raises:
        NoRows: If a training has made hardly any progress (see `progress`).
    """
    table = _select_trained_rows(rows, name, loss, optimizer, rate)
    return table.in_topic / np.minimum(FACTOR * table.other.abs(), DEVIATIONS * table.other_std)


@trainings
def gap(rows: Rows, name: str, loss: str) -> "Series[float]":
    """Return how much larger the test loss is if only one part of a transformer is trained, as a relative increase.

        increase = (loss if only one part is trained) / (loss if more is trained) - 1

    The transformers are trained by Adam on documents of a topic model.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        name: Trained part. "embedding alone" is compared with the complete network. "without L2" (only the value
            matrix, with uniform attention) is compared with training the value matrix and the attention.
        loss: "CE" (cross-entropy) or "squared".

    Returns:
        One number per seed of the documents.
    """
    joint = {"embedding alone": "all", "without L2": "with values"}[name]
    part, full = (_select_training(rows, each, loss, "adam", FIGURE_RATE).test for each in (name, joint))
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
    """Return the mean attention weight of a trained transformer over word pairs of one kind.

    The transformer is trained on documents of a topic model. Weights are rescaled to documents of 100 words.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Kind of word pairs: "same_word", "same_topic" (different words of one topic) or "other" (different
            topics).
        optimizer: "adam" or "sgd".
        rate: Learning rate.
        name: "with values" if the value matrix is trained too, or "diagonal values" if it is a fixed diagonal matrix.
        shift: Number of words by which the topics are shifted in the analysis: 0 (default), or 4 as in the authors'
            code.
        loss: "CE" (cross-entropy, default) or "squared".

    Returns:
        One mean per seed of the documents.
    """
    return _select_attention(rows, optimizer, rate, name, shift, loss)[column]


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
    """Compare the attention of a trained transformer between two kinds of word pairs, as a log ratio of means.

        log(mean attention of the first kind / mean attention of the second kind)

    The transformer is trained on documents of a topic model, with cross-entropy as the loss.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        first: Kind in the numerator: "same_word", "same_topic" (different words of one topic) or "other" (different
            topics).
        second: Kind in the denominator.
        optimizer: "adam" or "sgd".
        rate: Learning rate.
        name: "with values" if the value matrix is trained too, or "diagonal values" if it is a fixed diagonal matrix.
        shift: Number of words by which the topics are shifted in the analysis: 0 (default), or 4 as in the authors'
            code.

    Returns:
        One natural log ratio per seed of the documents.

    Raises:
        NoRows: If a training has made hardly any progress (see `progress`).
    """
    _select_trained_rows(rows, name, "CE", optimizer, rate)
    table = _select_attention(rows, optimizer, rate, name, shift)
    return (table[first] / table[second]).map(math.log)


@trainings
def ordered(rows: Rows) -> Counts:
    """Count the optimizer settings with which the trained attention of a transformer is ordered by topic.

    The required order is same word > other words of the same topic > words of other topics, for mean attention weights.
    The settings are those of Table 2.1. Trainings with hardly any progress are omitted (see `progress`).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        Per seed of the documents, the number of settings in this order and the number of all settings.
    """
    in_order, moved = [], []
    for optimizer, rate in SETTINGS:
        table = _select_attention(rows, optimizer, rate)
        has_moved = _compute_progress(rows, "with values", "CE", optimizer, rate) >= MOVED
        in_order.append(has_moved & (table.same_word > table.same_topic) & (table.same_topic > table.other))
        moved.append(has_moved)
    return Counts(DataFrame(in_order).sum(), DataFrame(moved).sum())


@trainings
def early_growth(
    rows: Rows, matrix: str = "keys", name: str = "one layer", optimizer: str = "sgd"
) -> "Series[float]":
    """Return how much a weight matrix of a transformer grows early in training, relative to the value matrix.

    The growth is the increase of the matrix norm. The early part of the training ends when the norm of the value matrix
    reaches 40 % of its final value.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        matrix: Name of the weight matrix, for example "keys" (default) for W^K.
        name: Name of the trained transformer, "one layer" (default) or "four layers".
        optimizer: "adam" or "sgd" (default).

    Returns:
        One ratio of increases (matrix / value matrix) per seed of the documents.
    """
    return _apply_by_seed(rows, name, optimizer, lambda table: _compute_growth(table, matrix))


@trainings
def slowing(rows: Rows, name: str = "one layer", optimizer: str = "sgd") -> "Series[float]":
    """Return how much slower the value matrix of a transformer grows in the second stage of training, as a ratio.

    The growth rate is the increase of the matrix norm per training step. The first stage ends when the norm of the key
    matrix has grown by half.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        name: Name of the trained transformer, "one layer" (default) or "four layers".
        optimizer: "adam" or "sgd" (default).

    Returns:
        One ratio of growth rates (second / first stage) per seed of the documents. It is 1 if there is no second stage.
    """
    return _apply_by_seed(rows, name, optimizer, _compute_slowing)


@trainings
def growth(rows: Rows, matrix: str, name: str = "one layer", optimizer: str = "sgd") -> "Series[float]":
    """Return how much a weight matrix of a transformer grows during training, as a ratio of norms (final / initial).

    The transformer is trained on documents of a topic model.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        matrix: Name of the matrix of a transformer that is trained on documents of a topic model, for example "keys" or
            "values".
        name: Name of the trained transformer, "one layer" (default) or "four layers".
        optimizer: "adam" or "sgd" (default).

    Returns:
        One ratio per seed of the documents.
    """
    return _apply_by_seed(
        rows, name, optimizer, lambda table: float(table[matrix].iloc[-1] / table[matrix].iloc[0])
    )


def _compute_progress(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> "Series[float]":
    table = _select_training(rows, name, loss, optimizer, rate)
    adam = _select_training(rows, name, loss, "adam", FIGURE_RATE)
    words = sum(str(column).startswith("word_") for column in rows["matrix"])
    # The smallest loss of a constant prediction, which biases alone can reach.
    constant = math.log(words) if loss == "CE" else 1 - 1 / words
    return (constant - table.test) / (constant - adam.test)


def _select_trained_rows(rows: Rows, name: str, loss: str, optimizer: str, rate: float) -> DataFrame:
    """Select the measurements of trainings, including diverged ones.

    Raises:
        NoRows: If a training has made hardly any progress (see `progress`).
    """
    found = _compute_progress(rows, name, loss, optimizer, rate)
    unmoved = int((found < MOVED).sum())
    if unmoved:
        raise NoRows(
            f"{unmoved} of {len(found)} trainings have made no progress: their loss falls below that of a constant by "
            f"{found.median():.2%} (median) of the fall under Adam at {FIGURE_RATE:g}"
        )
    return _select_training(rows, name, loss, optimizer, rate)


def _apply_by_seed(
    rows: Rows, name: str, optimizer: str, statistic: Callable[[DataFrame], float]
) -> "Series[float]":
    table = select_rows_by_seed(rows, "stage", name=name, optimizer=optimizer)
    return Series({seed: statistic(part.sort_values("step")) for seed, part in table.groupby("seed")})


def _compute_growth(table: DataFrame, matrix: str) -> float:
    reached = int(np.argmax((table["values"] >= REACHED * table["values"].iloc[-1]).to_numpy()))
    growths = [float(table[each].iloc[reached] - table[each].iloc[0]) for each in (matrix, "values")]
    return growths[0] / growths[1] if growths[1] else float("nan")


def _compute_slowing(table: DataFrame) -> float:
    has_grown = (table["keys"] >= 1.5 * table["keys"].iloc[0]).to_numpy()
    end = int(np.argmax(has_grown)) if has_grown.any() else len(table) - 1
    if not 0 < end < len(table) - 1:
        return 1.0
    sizes, steps = table["values"].to_numpy(), table["step"].to_numpy()
    first = (sizes[end] - sizes[0]) / (steps[end] - steps[0])
    return float((sizes[-1] - sizes[end]) / (steps[-1] - steps[end]) / first)
