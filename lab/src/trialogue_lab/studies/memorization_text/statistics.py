"""Statistics of the study about networks that store the next-token distributions of a text.

A context is a sequence of S tokens, and the networks store the most frequent contexts of a sample of the text. An
encoder is a table of logits of limited rank that approximates the distributions. Each statistic has one number per
sample.
"""

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
    """Return a property of the next-token distributions of a sample of the text.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the property, for example "entropy" in nats or "contexts", the number of stored contexts.
        context: Number of tokens of a context.

    Returns:
        One value per sample.
    """
    return _by_seed(rows.where("text", context=context), column)


@samples
def encoder(rows: Rows, column: str, context: int, wide: bool) -> "Series[float]":
    """Return the KL divergence of encoders, tables of logits of limited rank, from the text's distributions, in nats.

    Args:
        rows: Measured rows of a run, by kind.
        column: "kl" for the optimized encoder, or "truncated" for the truncated singular value decomposition.
        context: Number of tokens of a context.
        wide: Whether to select the largest rank instead of the smallest.

    Returns:
        One divergence per sample.
    """
    return _by_seed(rows.where("encoder", context=context, width=_width(rows, wide)), column)


@samples
def network(
    rows: Rows, column: str, method: str, context: int, wide: bool, share: float = 1.0
) -> "Series[float]":
    """Return a measured value of the networks, or of the tables, that store next-token distributions by one method.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "kl" (divergence from the distributions), "held_out" (loss on held-out
            text), both in nats, or "bytes".
        method: "exact", "likeliest" or "ridge" for constructed networks, "trained" for a trained one of the same shape,
            "transformer", or "table" for a table of counts.
        context: Number of tokens of a context.
        wide: Whether to select the largest width instead of the smallest.
        share: Number of features as a share of the number of contexts.

    Returns:
        One value per sample.

    Raises:
        NoRows: If the value was not measured in this setting.
    """
    setting = {"context": context, "width": _width(rows, wide), "share": share}
    return _by_seed(rows.where("network", method=method, **setting), column)


def _by_seed(table: DataFrame, column: str) -> "Series[float]":
    if table.empty or column not in table:
        raise NoRows(f"no {column} was measured in this setting")
    return table.set_index("seed")[column]


@samples
def digits_over(rows: Rows, first: str, second: str) -> "Series[float]":
    """Return the decimal logarithm of the ratio of two methods' KL divergences from the text's distributions.

    Args:
        rows: Measured rows of a run, by kind.
        first: Method in the numerator (see `network`).
        second: Method in the denominator.

    Returns:
        One mean per sample, over context lengths, widths and shares for which both methods were measured.
    """
    table = _compared(rows, "kl", first, second)
    return (table[first] / table[second]).map(math.log10).groupby("seed").mean()


@samples
def beyond(rows: Rows, first: str, second: str, column: str) -> "Series[float]":
    """Return the difference of a measured value between two methods.

    Args:
        rows: Measured rows of a run, by kind.
        first: Method from which the other is subtracted (see `network`).
        second: Method that is subtracted.
        column: Name of the value, for example "held_out".

    Returns:
        One mean per sample, over context lengths, widths and shares for which both methods were measured.
    """
    table = _compared(rows, column, first, second)
    return (table[first] - table[second]).groupby("seed").mean()


@samples
def digits_over_alone(rows: Rows, method: str, share: float) -> "Series[float]":
    """Return the decimal logarithm of the ratio of the KL divergences of a method and of token frequencies alone.

    Token frequencies predict the next token without its context.

    Args:
        rows: Measured rows of a run, by kind.
        method: Name of the method (see `network`).
        share: Number of features as a share of the number of contexts.

    Returns:
        One minimum per sample, over context lengths and widths.
    """
    table = rows.where("network", method=method, share=share).set_index(["seed", "context"])
    alone = rows["text"].set_index(["seed", "context"]).alone_kl
    return (table.kl / alone.reindex(table.index)).map(math.log10).groupby("seed").min()


@samples
def bytes_over_table(rows: Rows, context: int, wide: bool) -> "Series[float]":
    """Return the ratio of the sizes of a network and a table that both store all contexts of a sample, in bytes.

    Args:
        rows: Measured rows of a run, by kind.
        context: Number of tokens of a context.
        wide: Whether to select the largest width instead of the smallest.

    Returns:
        One ratio per sample.

    Raises:
        NoRows: If the networks store only the most frequent contexts.
    """
    table = rows.where("text", context=context)
    if (table.contexts < table.different).any():
        raise NoRows("not all contexts are stored")
    return network("bytes", EXACT, context, wide)(rows) / text("table_bytes", context)(rows)


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """Return the smallest log ratio of a bound to the quantity that it bounds, over samples and settings.

    The quantity is the absolute difference between the KL divergences of the network and of its encoder from the text's
    distributions. The bound holds if the result is at least zero.

    Args:
        rows: Measured rows of a run, by kind.
        bound: Column of the bound, "tight" or "loose".
    """
    return float(np.log(_slack(rows, bound)).min())


@samples
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """Return the decimal logarithm of the ratio of a bound to the quantity that it bounds.

    The quantity is the absolute difference between the KL divergences of the network and of its encoder from the text's
    distributions.

    Args:
        rows: Measured rows of a run, by kind.
        bound: Column of the bound, "tight" or "loose".

    Returns:
        One mean per sample, over settings with a finite bound.
    """
    return _slack(rows, bound).map(math.log10).groupby("seed").mean()


def _slack(rows: Rows, bound: str) -> "Series[float]":
    """Return the ratio of a bound to the quantity that it bounds, for networks whose bounds are finite."""
    table = rows.where("network", method=LIKELIEST).set_index("seed")
    table = table[(table.left > 0) & table.loose.notna()]
    return table[bound] / (table.kl - table.encoder_kl).abs()


@samples
def digits_of_optimum(rows: Rows) -> "Series[float]":
    """Return the decimal logarithm of the ratio of the KL divergences of the optimized and the truncated encoder.

    Returns:
        One mean per sample, over context lengths and widths.
    """
    table = rows["encoder"]
    return (table.kl / table.truncated).map(math.log10).groupby(table.seed).mean()


def _compared(rows: Rows, column: str, first: str, second: str) -> DataFrame:
    """Return a column of two methods, by sample and setting, for settings that have both methods."""
    table = rows["network"].pivot(index=_SETTING, columns="method", values=column)
    if not {first, second} <= set(table):
        raise NoRows(f"{first} and {second} were not both measured")
    return table[[first, second]].dropna()
