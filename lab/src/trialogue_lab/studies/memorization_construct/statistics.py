"""Statistics of the study about attention-only networks whose weights are computed to store distributions.

A context is a sequence of two tokens, and its distribution is the next-token distribution. The features of a network
are the outputs of its attention heads on all contexts, and their rank limits how many contexts it can store. An encoder
is a table of logits of limited rank that approximates the distributions. A network is built to represent an encoder.
"""

import math

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")


@exact
def rank_error(rows: Rows, formula: str, generic: bool | None = None) -> float:
    """Return the largest error of a formula for the number of linearly independent features of a network.

    The feature matrix contains the outputs of the attention heads of a network with random weights, with one row per
    context (sequence of S tokens). Its rank limits the number of contexts that the network can store.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        formula: Column of the formula: "printed" for the published one, or "mended" for the corrected one. "rank_one"
            is the measured rank of a network whose queries have dimension 1.
        generic: Whether to select the network shapes with S of at least 2 and an embedding width of at most the
            vocabulary size. None for all shapes.

    Returns:
        The maximum over network shapes.
    """
    table = rows["rank"] if generic is None else rows.where("rank", generic=generic)
    return float((table.measured - table[formula]).abs().max())


@draws
def held(rows: Rows, column: str, provision: float = 0.05, wide: bool = True) -> "Series[float]":
    """Return a measurement of networks that are constructed to store one next-token distribution per context.

    A context is a sequence of two tokens. The weights of the one-layer attention network are computed, not trained. It
    can store as many contexts as it has features (the rank of the joint output of its heads).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "error", the largest error of a log-probability.
        provision: Additional features beyond one per context, as a share of the number of contexts.
        wide: Whether to select the network with the largest embedding width instead of the smallest one.

    Returns:
        One value per seed of the distributions.
    """
    table = rows["held"]
    width = table.width.max() if wide else table.width.min()
    return table[(table.width == width) & (table.provision == provision)].groupby("seed")[column].mean()


@draws
def digits(rows: Rows, column: str, provision: float) -> "Series[float]":
    """Return the decimal logarithm of an error of networks that are constructed to store next-token distributions.

    The error is a measurement of `held`, for the smallest embedding width.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "error_float32", the largest error of a log-probability in float32.
        provision: Additional features beyond one per context, as a share of the number of contexts.

    Returns:
        One logarithm per seed of the distributions.
    """
    return held(column, provision, False)(rows).map(math.log10)


@draws
def association(rows: Rows, column: str, heads: int) -> "Series[float]":
    """Return a measurement of networks that are constructed to predict one given token after each context.

    A context is a sequence of two tokens, and the weights are computed, not trained. The network has embedding width 2
    and head width 2. It stores as many contexts as it has features.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column: "accuracy" for the accuracy on all contexts, "right" for the accuracy on stored
            contexts, or "bound" for the theoretical lower bound of the accuracy.
        heads: Number of attention heads.

    Returns:
        One value per seed of the tokens.
    """
    return rows.where("association", heads=heads).groupby("seed")[column].mean()


@draws
def beyond_bound(rows: Rows) -> "Series[float]":
    """Return how far the accuracy of networks with computed weights exceeds its theoretical lower bound.

    The networks must predict one given token after each context, and are too small to store all contexts.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean over networks per seed of the tokens.
    """
    table = rows["association"].query("stored < contexts")
    return (table.accuracy - table.bound).groupby(table.seed).mean()


@draws
def approximate(rows: Rows, column: str, heads: int) -> "Series[float]":
    """Return the KL divergence of networks that are too small to store the next-token distributions of all contexts.

    The divergence is from the true next-token distributions to the predictions, in nats.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "kl" for networks that store the most likely contexts exactly. "ridge" for networks whose output weights
            are fitted to all contexts by ridge regression.
        heads: Number of attention heads.

    Returns:
        One value per seed of the distributions.
    """
    return rows.where("approximate", heads=heads).groupby("seed")[column].mean()


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """Return the smallest log ratio (upper bound / measured error) for networks that approximate distributions.

    Theorem 1 gives the bound. A network with computed weights approximates an encoder, which is a low-rank table of
    logits for next-token distributions. The error is |KL divergence of the network - KL divergence of the encoder|,
    both from the true distributions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        bound: Column of the bound: "tight" for equation 13, or "loose" for equation 14.

    Returns:
        The minimum over all networks. The bound holds if it is at least zero.
    """
    return float(np.log(_compute_slack(rows, bound)).min())


@draws
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """Return the decimal log ratio (upper bound / measured error) for networks that approximate distributions.

    Theorem 1 gives the bound. A network with computed weights approximates an encoder, which is a low-rank table of
    logits for next-token distributions. The error is |KL divergence of the network - KL divergence of the encoder|,
    both from the true distributions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        bound: Column of the bound: "tight" for equation 13, or "loose" for equation 14.

    Returns:
        One mean over numbers of heads per seed.
    """
    return _compute_slack(rows, bound).map(math.log10).groupby("seed").mean()


def _compute_slack(rows: Rows, bound: str) -> "Series[float]":
    """Return bound / error of Theorem 1 for all networks that are too small to store all contexts."""
    table = rows["approximate"].query("left > 0").set_index("seed")
    return table[bound] / (table.kl - table.encoder_kl).abs()


@draws
def ridge_gain(rows: Rows) -> "Series[float]":
    """Compare two ways of computing the output weights of a network that is too small for its task, as a log ratio.

        log10(KL divergence of Theorem 1's network / KL divergence of ridge regression)

    The network should return given next-token distributions after all contexts, but cannot store all of them. Theorem 1
    stores the most likely contexts exactly. Ridge regression fits all contexts approximately.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean over numbers of heads per seed. It is positive if ridge regression is better.
    """
    table = rows["approximate"].query("left > 0")
    return (table.kl / table.ridge).map(math.log10).groupby(table.seed).mean()


@draws
def encoder(rows: Rows, column: str, width: int) -> "Series[float]":
    """Return the error of a low-rank table of logits that approximates given next-token distributions.

    The error is a KL divergence.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "truncated" if the table is a truncated singular value decomposition, or "nearest" if it is optimized
            numerically.
        width: Rank of the table.

    Returns:
        One divergence in nats per seed of the distributions.
    """
    return rows.where("encoder", width=width).groupby("seed")[column].mean()


@draws
def log_optimum_ratio(rows: Rows) -> "Series[float]":
    """Compare an optimized and a truncated low-rank table of logits by their errors, as a natural log ratio.

        log(KL divergence of the optimized table / KL divergence of the truncated table)

    Both tables approximate next-token distributions. The truncated table is a truncated singular value decomposition.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean per seed, over all ranks except the largest.
    """
    table = rows["encoder"].query("width < width.max()")
    return (table.nearest / table.truncated).map(math.log).groupby(table.seed).mean()


@exact
def look_up_slack(rows: Rows, bound: str) -> float:
    """Return the smallest difference between the upper bound of Theorem 2 and the bounded error.

    The theorem approximates next-token distributions by a low-rank table of logits, which is built from nearly
    orthogonal vectors. The error is a KL divergence.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        bound: Column of the bound: "bound", or "simple" for its simplified form.

    Returns:
        The smallest difference over seeds, in nats. The bound holds if it is at least zero.
    """
    return float((rows["look-up"][bound] - rows["look-up"].kl).min())
