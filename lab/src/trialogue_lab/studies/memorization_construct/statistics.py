"""Statistics of the study about attention-only networks whose weights are constructed to store distributions.

A context is a sequence of two tokens, and its distribution is the next-token distribution. The features of a network
are the outputs of its heads on all contexts, and their rank limits the number of contexts that it can store. An encoder
is a table of logits of limited rank that approximates the distributions. The networks are constructed to represent it.
"""

import math

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")


@exact
def rank_error(rows: Rows, formula: str, generic: bool | None = None) -> float:
    """Return the largest difference, over network shapes, between the measured rank of the features and a formula.

    Args:
        rows: Measured rows of a run, by kind.
        formula: Column of the formula: "printed" for the published one, or "mended" for the corrected one.
        generic: Whether to select the shapes for which the published formula holds. None for all shapes.
    """
    table = rows["rank"] if generic is None else rows.where("rank", generic=generic)
    return float((table.measured - table[formula]).abs().max())


@draws
def held(rows: Rows, column: str, provision: float = 0.05, wide: bool = True) -> "Series[float]":
    """Return a measured value of networks that store the next-token distributions of all contexts.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "error", the largest error of a log-probability.
        provision: Additional features, as a share of the number of contexts.
        wide: Whether to select the wide network instead of the narrow one.

    Returns:
        One value per seed.
    """
    table = rows["held"]
    width = table.width.max() if wide else table.width.min()
    return table[(table.width == width) & (table.provision == provision)].groupby("seed")[column].mean()


@draws
def digits(rows: Rows, column: str, provision: float) -> "Series[float]":
    """Return the decimal logarithm of a measured value of narrow networks that store all distributions.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value (see `held`), for example "error_float32".
        provision: Additional features, as a share of the number of contexts.

    Returns:
        One logarithm per seed.
    """
    return held(column, provision, False)(rows).map(math.log10)


@draws
def association(rows: Rows, column: str, heads: int) -> "Series[float]":
    """Return a measured value of networks that store one token per context, with an embedding width of two.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "accuracy" on all contexts or "right", the accuracy on stored contexts.
        heads: Number of attention heads.

    Returns:
        One value per seed.
    """
    return rows.where("association", heads=heads).groupby("seed")[column].mean()


@draws
def beyond_bound(rows: Rows) -> "Series[float]":
    """Return the accuracy of constructed networks on all contexts minus its lower bound.

    Returns:
        One mean per seed, over networks that cannot store all contexts.
    """
    table = rows["association"].query("stored < contexts")
    return (table.accuracy - table.bound).groupby(table.seed).mean()


@draws
def approximate(rows: Rows, column: str, heads: int) -> "Series[float]":
    """Return a measured value of networks that store the distributions of the most likely contexts only.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "kl", the divergence from the true distributions in nats.
        heads: Number of attention heads.

    Returns:
        One value per seed.
    """
    return rows.where("approximate", heads=heads).groupby("seed")[column].mean()


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """Return the smallest log ratio of a bound of Theorem 1 to the quantity that it bounds, over all networks.

    The quantity is the absolute difference between the KL divergences of the network and of its encoder from the
    targets. The bound holds if the result is at least zero.

    Args:
        rows: Measured rows of a run, by kind.
        bound: Column of the bound, "tight" or "loose".
    """
    return float(np.log(_slack(rows, bound)).min())


@draws
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """Return the decimal logarithm of the ratio of a bound of Theorem 1 to the quantity that it bounds.

    The quantity is the absolute difference between the KL divergences of the network and of its encoder from the
    targets.

    Args:
        rows: Measured rows of a run, by kind.
        bound: Column of the bound, "tight" or "loose".

    Returns:
        One mean over numbers of heads per seed.
    """
    return _slack(rows, bound).map(math.log10).groupby("seed").mean()


def _slack(rows: Rows, bound: str) -> "Series[float]":
    """Return the ratio of a bound to the quantity that it bounds."""
    table = rows["approximate"].query("left > 0").set_index("seed")
    return table[bound] / (table.kl - table.encoder_kl).abs()


@draws
def ridge_gain(rows: Rows) -> "Series[float]":
    """Return how much closer ridge regression is to the targets than the construction of Theorem 1.

    Returns:
        One mean per seed of log10 of the ratio of KL divergences, Theorem 1 divided by ridge regression.
    """
    table = rows["approximate"].query("left > 0")
    return (table.kl / table.ridge).map(math.log10).groupby(table.seed).mean()


@draws
def encoder(rows: Rows, column: str, width: int) -> "Series[float]":
    """Return the KL divergence of encoders, tables of logits of limited rank, from the true distributions, in nats.

    Args:
        rows: Measured rows of a run, by kind.
        column: "truncated" for the truncated singular value decomposition, or "nearest" for the optimized encoder.
        width: Rank of the logits.

    Returns:
        One divergence per seed.
    """
    return rows.where("encoder", width=width).groupby("seed")[column].mean()


@draws
def log_optimum_ratio(rows: Rows) -> "Series[float]":
    """Return the log ratio of KL divergences, optimized encoder divided by truncated encoder.

    An encoder is a table of logits of limited rank that approximates the true distributions.

    Returns:
        One mean per seed, over widths below the rank of the targets.
    """
    table = rows["encoder"].query("width < width.max()")
    return (table.nearest / table.truncated).map(math.log).groupby(table.seed).mean()


@exact
def look_up_slack(rows: Rows, bound: str) -> float:
    """Return the smallest difference, over seeds, between a bound of Theorem 2 and the KL divergence of its encoder.

    The bound holds if the result is at least zero.

    Args:
        rows: Measured rows of a run, by kind.
        bound: Column of the bound, "bound" or "simple".
    """
    return float((rows["look-up"][bound] - rows["look-up"].kl).min())
