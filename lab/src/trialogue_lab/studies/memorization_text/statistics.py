"""Quantities of the study, one number a sample of the text: how near to its law, and at what size."""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.memorization_text.config import EXACT, LIKELIEST

samples = Replication("draw", "seeds")

_SETTING = ["seed", "context", "width", "share"]


def width_of(rows: Rows, wide: bool) -> int:
    """The greatest width that was measured, or the least."""
    widths = rows["encoder"].width
    return int(widths.max() if wide else widths.min())


@samples
def text(rows: Rows, column: str, context: int) -> "Series[float]":
    """A number of the law of so many tokens of context."""
    return _by_seed(rows.where("text", context=context), column)


@samples
def encoder(rows: Rows, column: str, context: int, wide: bool) -> "Series[float]":
    """A distance of encoders of the law, in nats."""
    return _by_seed(rows.where("encoder", context=context, width=width_of(rows, wide)), column)


@samples
def network(
    rows: Rows, column: str, method: str, context: int, wide: bool, share: float = 1.0
) -> "Series[float]":
    """A number of what a method makes of the law with features for a share of the contexts, or in as many bytes."""
    setting = {"context": context, "width": width_of(rows, wide), "share": share}
    return _by_seed(rows.where("network", method=method, **setting), column)


def _by_seed(table: DataFrame, column: str) -> "Series[float]":
    """A column by seed; raises `NoRows` where the setting was not measured."""
    if table.empty or column not in table:
        raise NoRows(f"no {column} was measured in this setting")
    return table.set_index("seed")[column]


@samples
def digits_over(rows: Rows, first: str, second: str) -> "Series[float]":
    """The decimal logarithm of one method's KL over another's, mean over settings where both were measured."""
    table = _side_by_side(rows, "kl", first, second)
    return (table[first] / table[second]).map(math.log10).groupby("seed").mean()


@samples
def beyond(rows: Rows, first: str, second: str, column: str) -> "Series[float]":
    """One method's number less another's, mean over settings where both were measured."""
    table = _side_by_side(rows, column, first, second)
    return (table[first] - table[second]).groupby("seed").mean()


@samples
def digits_over_alone(rows: Rows, method: str, share: float) -> "Series[float]":
    """The decimal logarithm of a method's KL over that of the law of single tokens, the least over settings."""
    table = rows.where("network", method=method, share=share).set_index(["seed", "context"])
    alone = rows["text"].set_index(["seed", "context"]).alone_kl
    return (table.kl / alone.reindex(table.index)).map(math.log10).groupby("seed").min()


@samples
def bytes_over_table(rows: Rows, context: int, wide: bool) -> "Series[float]":
    """Bytes of the network that holds all contexts over those of the table that does, all shorter ones with them."""
    if not (rows["text"].contexts >= rows["text"].different)[rows["text"].context == context].all():
        raise NoRows("not all contexts are held")
    return network("bytes", EXACT, context, wide)(rows) / text("table_bytes", context)(rows)


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


def _side_by_side(rows: Rows, column: str, first: str, second: str) -> DataFrame:
    """A column of two methods, by sample and setting, where both were measured."""
    table = rows["network"].pivot(index=_SETTING, columns="method", values=column)
    if not {first, second} <= set(table):
        raise NoRows(f"no {first} beside {second}")
    return table[[first, second]].dropna()


def _left(rows: Rows) -> DataFrame:
    """Networks that hold the likeliest and leave some, whose bounds are finite."""
    table = rows.where("network", method=LIKELIEST)
    return table[(table.left > 0) & table.loose.notna()]
