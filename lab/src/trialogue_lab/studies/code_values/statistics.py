"""Quality, cost and distance from the target of each method, with one number per training."""

from typing import Literal

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows

trainings = Replication("training", "seeds")
Cost = Literal["queries", "distinct_queries", "positions"]


@trainings
def auc(rows: Rows) -> "Series[float]":
    """Return how well trained values tell accepted completions from others, as the area under the ROC curve.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The mean over the prefixes that end with the first, second, ... line, per training seed. Chance is 0.5.
    """
    return rows["values"].groupby("seed").auc.mean()


@trainings
def auc_after(rows: Rows, line: int) -> "Series[float]":
    """Return the area under the ROC curve of trained values for prefixes that end with a line.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        line: Number of the line, from 1.

    Returns:
        One number per training seed. Chance is 0.5.
    """
    return rows.require("values", line=line).groupby("seed").auc.mean()


@trainings
def accepted(rows: Rows, method: str) -> Counts:
    """Count the outputs of a method that consist of correct and distinct test cases.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        method: Name of the method.

    Returns:
        Numbers of accepted and of all outputs, per training seed.
    """
    found = rows.require("method", method=method).groupby("seed")
    return Counts(found.accepted.sum(), found.outputs.sum())


@trainings
def share_distinct(rows: Rows, method: str) -> "Series[float]":
    """Return the number of distinct correct test cases of a method, divided by the number of requested ones.

    Equal test cases in several outputs for the same function name count once.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        method: Name of the method.

    Returns:
        One share per training seed.
    """
    found = rows.require("method", method=method).groupby("seed")
    return found.distinct.sum() / (found.outputs.sum() * rows.config["cases"])


@trainings
def cost(rows: Rows, method: str, column: Cost = "queries") -> "Series[float]":
    """Return the cost of a method per accepted output.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        method: Name of the method.
        column: "queries" (default) for model calls, "distinct_queries" for model calls on prefixes that occur for the
            first time, or "positions" for evaluated positions, which include those of the values.

    Returns:
        One ratio of totals per training seed.
    """
    found = rows.require("method", method=method).groupby("seed")
    return found[column].sum() / found.accepted.sum()


@trainings
def distance(rows: Rows, method: str) -> "Series[float]":
    """Return the squared distance between two distributions of the number of list items in a text.

    One distribution is that of the accepted outputs of the method. The other is the target, from which rejection
    sampling samples. The estimate is unbiased, so it can be negative, and its mean for rejection sampling is zero.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        method: Name of the method.

    Returns:
        One estimate per training seed.
    """
    return rows.require("method", method=method).groupby("seed").distance.mean()


@trainings
def excess_items(rows: Rows, method: str) -> "Series[float]":
    """Return how many more list items an accepted output of a method has on average than the target.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        method: Name of the method.

    Returns:
        One difference of means per training seed.
    """
    found = rows.require("method", method=method).groupby("seed")
    return found["items"].mean() - found.reference_items.mean()
