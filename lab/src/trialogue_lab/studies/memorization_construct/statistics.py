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
    """Return the largest absolute difference between the measured rank of a feature matrix and a formula for it.

    The feature matrix of an attention-only network contains the outputs of its heads for all contexts. A context is a
    sequence of tokens. The maximum is taken over network shapes.

    Args:
        rows: Measured rows of a run, by kind.
        formula: Column of the formula: "printed" for the published one, or "mended" for the corrected one. "rank_one"
            is the measured rank of a network whose queries have dimension 1.
        generic: Whether to select the shapes with contexts of at least two tokens and an embedding width of at most the
            vocabulary size. None for all shapes.

    Returns:
        The largest difference between the two ranks.
    """
    table = rows["rank"] if generic is None else rows.where("rank", generic=generic)
    return float((table.measured - table[formula]).abs().max())


@draws
def held(rows: Rows, column: str, provision: float = 0.05, wide: bool = True) -> "Series[float]":
    """Return a measured value of networks that are constructed to store the next-token distributions of all contexts.

    A context is a sequence of two tokens. The networks consist of one attention layer, and their weights are computed
    instead of trained.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "error", the largest error of a log-probability.
        provision: Number of features in excess of the number of contexts, as a share of the number of contexts.
        wide: Whether to select the network with the largest embedding width instead of the smallest.

    Returns:
        One value per seed of the distributions.
    """
    table = rows["held"]
    width = table.width.max() if wide else table.width.min()
    return table[(table.width == width) & (table.provision == provision)].groupby("seed")[column].mean()


@draws
def digits(rows: Rows, column: str, provision: float) -> "Series[float]":
    """Return the decimal logarithm of a measured value of networks with the smallest embedding width.

    The weights of the networks are constructed to store the next-token distributions of all contexts. A context is a
    sequence of two tokens.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "error_float32", the largest error of a log-probability in float32.
        provision: Number of features in excess of the number of contexts, as a share of the number of contexts.

    Returns:
        One logarithm per seed of the distributions.
    """
    return held(column, provision, False)(rows).map(math.log10)


@draws
def association(rows: Rows, column: str, heads: int) -> "Series[float]":
    """Return a measured value of networks that are constructed to predict one given token per context.

    The embedding width and the head width are 2. A network stores as many contexts as it has features.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value: "accuracy" for all contexts, "right" for the accuracy on stored contexts, or "bound"
            for the theoretical lower bound of the accuracy.
        heads: Number of attention heads.

    Returns:
        One value per seed of the tokens.
    """
    return rows.where("association", heads=heads).groupby("seed")[column].mean()


@draws
def beyond_bound(rows: Rows) -> "Series[float]":
    """Return the accuracy of constructed networks minus its theoretical lower bound.

    The networks are constructed to predict one given token per context, but have too few features to store all
    contexts. The accuracy is measured on all contexts, and the difference is averaged over networks.

    Args:
        rows: Measured rows of a run, by kind.

    Returns:
        One mean difference per seed of the tokens.
    """
    table = rows["association"].query("stored < contexts")
    return (table.accuracy - table.bound).groupby(table.seed).mean()


@draws
def approximate(rows: Rows, column: str, heads: int) -> "Series[float]":
    """Return a measured value of networks that are too small to store the next-token distributions of all contexts.

    The networks are constructed to store the distributions of the most likely contexts.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value: "kl" for the divergence from the true distributions, or "ridge" for the divergence of
            a network whose output weights are fitted to all contexts by ridge regression. Both are in nats.
        heads: Number of attention heads.

    Returns:
        One value per seed of the distributions.
    """
    return rows.where("approximate", heads=heads).groupby("seed")[column].mean()


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """Return the smallest log ratio of an upper bound in Theorem 1 to the error that it bounds.

    A constructed network approximates an encoder, which is a table of logits of limited rank. The error is the absolute
    difference between the KL divergences of the network and of the encoder from the true distributions. The minimum is
    taken over all networks, and the bound holds if it is at least zero.

    Args:
        rows: Measured rows of a run, by kind.
        bound: Column of the bound: "tight" for equation 13, or "loose" for equation 14.

    Returns:
        The smallest natural logarithm of the ratio.
    """
    return float(np.log(_slack(rows, bound)).min())


@draws
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """Return the decimal logarithm of the ratio of an upper bound in Theorem 1 to the error that it bounds.

    A constructed network approximates an encoder, which is a table of logits of limited rank. The error is the absolute
    difference between the KL divergences of the network and of the encoder from the true distributions.

    Args:
        rows: Measured rows of a run, by kind.
        bound: Column of the bound: "tight" for equation 13, or "loose" for equation 14.

    Returns:
        One mean over networks with different numbers of heads, per seed.
    """
    return _slack(rows, bound).map(math.log10).groupby("seed").mean()


def _slack(rows: Rows, bound: str) -> "Series[float]":
    """Return the ratio of a bound to the quantity that it bounds."""
    table = rows["approximate"].query("left > 0").set_index("seed")
    return table[bound] / (table.kl - table.encoder_kl).abs()


@draws
def ridge_gain(rows: Rows) -> "Series[float]":
    """Return how much more accurate ridge regression is than the construction of Theorem 1.

    Both methods compute the output weights of a network that is too small to store all contexts. The construction
    stores the most likely contexts exactly, and ridge regression fits all contexts. The KL divergence from the true
    distributions is measured for both.

    Args:
        rows: Measured rows of a run, by kind.

    Returns:
        The decimal logarithm of the ratio of KL divergences (construction / ridge regression). There is one mean over
        numbers of heads per seed.
    """
    table = rows["approximate"].query("left > 0")
    return (table.kl / table.ridge).map(math.log10).groupby(table.seed).mean()


@draws
def encoder(rows: Rows, column: str, width: int) -> "Series[float]":
    """Return the KL divergence, in nats, between the true next-token distributions and an encoder.

    An encoder is a table of logits of limited rank that approximates the distributions.

    Args:
        rows: Measured rows of a run, by kind.
        column: "truncated" for the truncated singular value decomposition, or "nearest" for an encoder that is
            optimized numerically.
        width: Rank of the table.

    Returns:
        One divergence per seed of the distributions.
    """
    return rows.where("encoder", width=width).groupby("seed")[column].mean()


@draws
def log_optimum_ratio(rows: Rows) -> "Series[float]":
    """Return the log ratio of the KL divergences of two encoders, optimized over truncated.

    An encoder is a table of logits of limited rank that approximates next-token distributions. It is either optimized
    numerically or computed by truncating a singular value decomposition.

    Args:
        rows: Measured rows of a run, by kind.

    Returns:
        One mean natural logarithm per seed. The mean is taken over all ranks except the largest.
    """
    table = rows["encoder"].query("width < width.max()")
    return (table.nearest / table.truncated).map(math.log).groupby(table.seed).mean()


@exact
def look_up_slack(rows: Rows, bound: str) -> float:
    """Return the smallest difference between an upper bound in Theorem 2 and the KL divergence that it bounds.

    Theorem 2 bounds the divergence between next-token distributions and an encoder that is built from nearly orthogonal
    vectors. The minimum is taken over seeds, and the bound holds if it is at least zero.

    Args:
        rows: Measured rows of a run, by kind.
        bound: Column of the bound: "bound", or "simple" for its simplified form.

    Returns:
        The smallest difference, in nats.
    """
    return float((rows["look-up"][bound] - rows["look-up"].kl).min())
