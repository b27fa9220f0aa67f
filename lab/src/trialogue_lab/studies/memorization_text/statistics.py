"""Statistics of the study. Each returns one number per sample of the text."""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.memorization_text.config import EXACT, LIKELIEST

samples = Replication("draw", "seeds")

_SETTING = ["seed", "context", "width", "share"]


def _width(rows: Rows, wide: bool) -> int:
    """Return the largest width that was measured, or the smallest."""
    widths = rows["encoder"].width
    return int(widths.max() if wide else widths.min())


@samples
def text(rows: Rows, column: str, context: int) -> "Series[float]":
    """Return a column of the rows about the distribution after contexts of `context` tokens."""
    return _by_seed(rows.where("text", context=context), column)


@samples
def encoder(rows: Rows, column: str, context: int, wide: bool) -> "Series[float]":
    """Return a divergence of an encoder, in nats."""
    return _by_seed(rows.where("encoder", context=context, width=_width(rows, wide)), column)


@samples
def network(
    rows: Rows, column: str, method: str, context: int, wide: bool, share: float = 1.0
) -> "Series[float]":
    """Return a column of the rows about one method with features for a share of the contexts."""
    setting = {"context": context, "width": _width(rows, wide), "share": share}
    return _by_seed(rows.where("network", method=method, **setting), column)


def _by_seed(table: DataFrame, column: str) -> "Series[float]":
    if table.empty or column not in table:
        raise NoRows(f"no {column} was measured in this setting")
    return table.set_index("seed")[column]


@samples
def digits_over(rows: Rows, first: str, second: str) -> "Series[float]":
    """Return the decimal logarithm of the ratio of the methods' KL, averaged over settings that have both."""
    table = _compared(rows, "kl", first, second)
    return (table[first] / table[second]).map(math.log10).groupby("seed").mean()


@samples
def beyond(rows: Rows, first: str, second: str, column: str) -> "Series[float]":
    """Return the difference of a column between two methods, averaged over settings that have both."""
    table = _compared(rows, column, first, second)
    return (table[first] - table[second]).groupby("seed").mean()


@samples
def digits_over_alone(rows: Rows, method: str, share: float) -> "Series[float]":
    """Return the smallest decimal logarithm, over settings, of a method's KL over the KL of single tokens."""
    table = rows.where("network", method=method, share=share).set_index(["seed", "context"])
    alone = rows["text"].set_index(["seed", "context"]).alone_kl
    return (table.kl / alone.reindex(table.index)).map(math.log10).groupby("seed").min()


@samples
def bytes_over_table(rows: Rows, context: int, wide: bool) -> "Series[float]":
    """Return the bytes of the network that stores all contexts over the bytes of a table that does the same."""
    table = rows.where("text", context=context)
    if (table.contexts < table.different).any():
        raise NoRows("not all contexts are stored")
    return network("bytes", EXACT, context, wide)(rows) / text("table_bytes", context)(rows)


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """Return the smallest logarithm of the ratio of a bound to |KL (network) - KL (encoder)|."""
    return float(np.log(_slack(rows, bound)).min())


@samples
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """Return the decimal logarithm of the ratio of a bound to the quantity that it bounds, averaged over settings."""
    return _slack(rows, bound).map(math.log10).groupby("seed").mean()


def _slack(rows: Rows, bound: str) -> "Series[float]":
    """Return the ratio of a bound to the quantity that it bounds, for networks whose bounds are finite."""
    table = rows.where("network", method=LIKELIEST).set_index("seed")
    table = table[(table.left > 0) & table.loose.notna()]
    return table[bound] / (table.kl - table.encoder_kl).abs()


@samples
def digits_of_optimum(rows: Rows) -> "Series[float]":
    """Return the decimal logarithm of the ratio of the nearest encoder's KL to the truncated one's, averaged."""
    table = rows["encoder"]
    return (table.kl / table.truncated).map(math.log10).groupby(table.seed).mean()


def _compared(rows: Rows, column: str, first: str, second: str) -> DataFrame:
    """Return a column of two methods, by sample and setting, for settings that have both methods."""
    table = rows["network"].pivot(index=_SETTING, columns="method", values=column)
    if not {first, second} <= set(table):
        raise NoRows(f"{first} and {second} were not both measured")
    return table[[first, second]].dropna()
