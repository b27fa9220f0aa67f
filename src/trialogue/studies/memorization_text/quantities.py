"""Quantities of the study, one number a sample of the text: how near to its law, and at what size."""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue.ledger import NoRows, Replication, Rows, exact
from trialogue.studies.memorization_text.config import LIKELIEST

samples = Replication("draw", "seeds")

_SETTING = ["seed", "context", "width", "share"]


@samples
def text(rows: Rows, column: str, context: int) -> "Series[float]":
    """A number of the law of so many tokens of context."""
    return rows.where("text", context=context).set_index("seed")[column]


@samples
def encoder(rows: Rows, column: str, context: int, width: int) -> "Series[float]":
    """A distance of encoders of the law, in nats."""
    return rows.where("encoder", context=context, width=width).set_index("seed")[column]


@samples
def network(rows: Rows, column: str, method: str, context: int, width: int, share: float) -> "Series[float]":
    """A number of what one method makes of the law, with features for such a share of the contexts, or as large."""
    table = rows.where("network", method=method, context=context, width=width, share=share)
    if table.empty:
        raise NoRows(f"no network {method} of {share:g} of the contexts")
    return table.set_index("seed")[column]


def _side_by_side(rows: Rows, column: str, first: str, second: str) -> DataFrame:
    """A column of two methods, by sample and setting, where both were measured."""
    table = rows["network"].pivot(index=_SETTING, columns="method", values=column)
    if not {first, second} <= set(table):
        raise NoRows(f"no {first} beside {second}")
    return table[[first, second]].dropna()


@samples
def digits_over(
    rows: Rows, first: str, second: str, column: str = "kl", width: int | None = None
) -> "Series[float]":
    """The decimal logarithm of one method's number over another's, mean over settings."""
    table = _side_by_side(rows, column, first, second)
    if width is not None:
        table = table[table.index.get_level_values("width") == width]
    return np.log10(table[first] / table[second]).groupby("seed").mean()


@samples
def beyond(rows: Rows, first: str, second: str, column: str = "held_out") -> "Series[float]":
    """One method's number less another's, mean over settings."""
    table = _side_by_side(rows, column, first, second)
    return (table[first] - table[second]).groupby("seed").mean()


@samples
def digits_over_alone(rows: Rows, method: str) -> "Series[float]":
    """The decimal logarithm of a method's KL over that of the law of single tokens, the least over settings."""
    table = rows.where("network", method=method)
    alone = rows["text"].set_index(["seed", "context"]).alone_kl
    of_law = table.set_index(["seed", "context"]).kl
    return np.log10(of_law / alone.reindex(of_law.index)).groupby("seed").min()


def _left(rows: Rows) -> DataFrame:
    """Networks that hold the likeliest and leave some, whose bounds are finite."""
    table = rows.where("network", method=LIKELIEST)
    return table[(table.left > 0) & table.loose.notna()]


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """The logarithm of a bound over |KL (network) - KL (encoder)|, the least over samples and settings."""
    table = _left(rows)
    return float(np.log(table[bound] / (table.kl - table.encoder_kl).abs()).min())


@samples
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """The decimal logarithm of a bound over what it bounds, mean over settings."""
    table = _left(rows)
    return (table[bound] / (table.kl - table.encoder_kl).abs()).map(math.log10).groupby(table.seed).mean()


@samples
def digits_of_optimum(rows: Rows) -> "Series[float]":
    """The decimal logarithm of the nearest encoder's distance over the truncated one's, mean over settings."""
    table = rows["encoder"]
    return (table.kl / table.truncated).map(math.log10).groupby(table.seed).mean()


@samples
def bytes_a_context(rows: Rows, method: str, context: int, width: int, share: float) -> "Series[float]":
    """Bytes for each context that is kept."""
    table = rows.where("network", method=method, context=context, width=width, share=share).set_index("seed")
    return table.bytes / table.kept
