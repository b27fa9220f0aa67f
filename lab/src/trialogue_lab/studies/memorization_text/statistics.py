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


def _select_width(rows: Rows, wide: bool) -> int:
    """Return the largest or the smallest measured embedding width."""
    widths = rows["encoder"].width
    return int(widths.max() if wide else widths.min())


@samples
def text(rows: Rows, column: str, context: int) -> "Series[float]":
    """Return a property of the next-token distributions of a text sample, for example their entropy.

    The distributions are estimated by counting tokens after the most frequent contexts (sequences of S tokens).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the property, for example "entropy" in nats, or "contexts" for the number of contexts.
            "alone_kl" is the KL divergence from the distributions to the frequencies of tokens without context, in
            nats.
        context: Context length S.

    Returns:
        One value per sample.
    """
    return _index_by_seed(rows.where("text", context=context), column)


@samples
def encoder(rows: Rows, column: str, context: int, wide: bool) -> "Series[float]":
    """Return the error of a low-rank table of logits that approximates the next-token distributions of a text.

    Every frequent context of the text has such a distribution. The error is a KL divergence.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "kl" if the table is optimized numerically, or "truncated" if it is a truncated singular value
            decomposition.
        context: Number of tokens of a context.
        wide: Whether to select the largest rank instead of the smallest.

    Returns:
        One divergence in nats per sample of the text.
    """
    return _index_by_seed(rows.where("encoder", context=context, width=_select_width(rows, wide)), column)


@samples
def network(
    rows: Rows, column: str, method: str, context: int, wide: bool, share: float = 1.0
) -> "Series[float]":
    """Return a measurement of a network, or of another method, that stores the next-token distributions of a text.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column.
            - "kl": KL divergence from the distributions, in nats.
            - "held_out": loss on held-out text, in nats per token.
            - "bytes": size of the parameters.
            - Any other measured column.
        method: Name of the method.
            - "exact": network with computed weights that stores all contexts.
            - "likeliest": network with computed weights that stores the most frequent contexts.
            - "ridge": network with output weights from ridge regression on all contexts.
            - "trained": trained network of the same shape.
            - "transformer": trained transformer with about as many parameters.
            - "table": table of counts of the same size.
        context: Number of tokens of a context.
        wide: Whether to select the largest embedding width instead of the smallest.
        share: Number of features of a network, as a share of the number of contexts. 1 (default) for networks that can
            store all contexts.

    Returns:
        One value per sample of the text.

    Raises:
        NoRows: If the value was not measured in this setting.
    """
    setting = {"context": context, "width": _select_width(rows, wide), "share": share}
    return _index_by_seed(rows.where("network", method=method, **setting), column)


def _index_by_seed(table: DataFrame, column: str) -> "Series[float]":
    if table.empty or column not in table:
        raise NoRows(f"no {column} was measured in this setting")
    return table.set_index("seed")[column]


@samples
def digits_over(rows: Rows, first: str, second: str) -> "Series[float]":
    """Compare the errors of two methods that store the next-token distributions of a text, as a decimal log ratio.

        log10(KL divergence of the first method / KL divergence of the second method)

    The methods are compared at every context length, embedding width and number of features that both have.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        first: Method in the numerator, for example "likeliest", "ridge", "trained", "transformer" or "table" (see
            `network`).
        second: Method in the denominator.

    Returns:
        One mean over these settings per sample of the text.

    Raises:
        NoRows: If the methods were not both measured.
    """
    table = _select_two_methods(rows, "kl", first, second)
    return (table[first] / table[second]).map(math.log10).groupby("seed").mean()


@samples
def beyond(rows: Rows, first: str, second: str, column: str) -> "Series[float]":
    """Return the difference of a measurement between two methods that store the next-token distributions of a text.

        difference = (measurement of the first method) - (measurement of the second method)

    The methods are compared at every context length, embedding width and number of features that both have.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        first: Method in the minuend, for example "likeliest", "ridge", "trained", "transformer" or "table" (see
            `network`).
        second: Method that is subtracted.
        column: Name of the column, for example "held_out", the loss on held-out text in nats per token.

    Returns:
        One mean over these settings per sample of the text.

    Raises:
        NoRows: If the methods were not both measured.
    """
    table = _select_two_methods(rows, column, first, second)
    return (table[first] - table[second]).groupby("seed").mean()


@samples
def digits_over_alone(rows: Rows, method: str, share: float) -> "Series[float]":
    """Compare the error of a method that stores next-token distributions with the error of token frequencies.

        log10(KL divergence of the method / KL divergence of token frequencies)

    Token frequencies predict the next token without its context.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        method: Name of the method, for example "likeliest" for networks that are built to store the most
            frequent contexts.
        share: Number of features of the network, divided by the number of contexts.

    Returns:
        One minimum over context lengths and embedding widths, per sample of the text. If it is positive, the
        method is always worse than token frequencies.
    """
    table = rows.where("network", method=method, share=share).set_index(["seed", "context"])
    alone = rows["text"].set_index(["seed", "context"]).alone_kl
    return (table.kl / alone.reindex(table.index)).map(math.log10).groupby("seed").min()


@samples
def bytes_over_table(rows: Rows, context: int, wide: bool) -> "Series[float]":
    """Return the size of a network relative to a table of counts that stores the same distributions.

    Sizes are in bytes. Both store the next-token distributions of all contexts of a text sample. The weights of the
    network are computed, not trained.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        context: Number of tokens of a context.
        wide: Whether to select the largest embedding width instead of the smallest.

    Returns:
        One ratio per sample of the text.

    Raises:
        NoRows: If the networks store only the most frequent contexts.
    """
    table = rows.where("text", context=context)
    if (table.contexts < table.different).any():
        raise NoRows("not all contexts are stored")
    return network("bytes", EXACT, context, wide)(rows) / text("table_bytes", context)(rows)


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """Return the smallest log ratio (upper bound / measured error) for networks that store the distributions of a text.

    Theorem 1 bounds how well a network with computed weights reproduces an encoder, which is a low-rank table of logits
    for the next-token distributions of a text. The error is the absolute difference of their KL divergences from the
    true distributions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        bound: Column of the bound: "tight" for equation 13, or "loose" for equation 14.

    Returns:
        The minimum over samples and settings. The bound holds if it is at least zero.
    """
    return float(np.log(_compute_slack(rows, bound)).min())


@samples
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """Return the decimal log ratio (upper bound / measured error) for networks that store the distributions of a text.

    Theorem 1 gives the bound. A network stores the most frequent contexts of an encoder, a low-rank table of logits for
    the next-token distributions of a text. The error is |KL divergence of the network - KL divergence of the encoder|,
    both from the true distributions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        bound: Column of the bound: "tight" for equation 13, or "loose" for equation 14.

    Returns:
        One mean per sample of the text, over the settings in which the bound of equation 14 is finite.
    """
    return _compute_slack(rows, bound).map(math.log10).groupby("seed").mean()


def _compute_slack(rows: Rows, bound: str) -> "Series[float]":
    """Return bound / error of Theorem 1 for all networks with finite bounds."""
    table = rows.where("network", method=LIKELIEST).set_index("seed")
    table = table[(table.left > 0) & table.loose.notna()]
    return table[bound] / (table.kl - table.encoder_kl).abs()


@samples
def digits_of_optimum(rows: Rows) -> "Series[float]":
    """Compare an optimized and a truncated low-rank table of logits by their errors, as a decimal log ratio.

        log10(KL divergence of the optimized table / KL divergence of the truncated table)

    Both tables approximate the next-token distributions of a text. The truncated table is a truncated singular value
    decomposition.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean per sample of the text, over context lengths and ranks.
    """
    table = rows["encoder"]
    return (table.kl / table.truncated).map(math.log10).groupby(table.seed).mean()


def _select_two_methods(rows: Rows, column: str, first: str, second: str) -> DataFrame:
    """Return a column for two methods, for the settings in which both were measured."""
    table = rows["network"].pivot(index=_SETTING, columns="method", values=column)
    if not {first, second} <= set(table):
        raise NoRows(f"{first} and {second} were not both measured")
    return table[[first, second]].dropna()
