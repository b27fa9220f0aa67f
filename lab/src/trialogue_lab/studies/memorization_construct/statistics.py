"""Statistics of the study: exact numbers for ranks and bounds, and one number per seed for all others."""

import math

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")


@exact
def rank_error(rows: Rows, formula: str, generic: bool | None = None) -> float:
    """Return the largest difference over shapes between the measured rank and a formula.

    Args:
        rows: The rows of the result.
        formula: Column of the formula.
        generic: Whether to select the shapes for which the published formula holds. None for all shapes.
    """
    table = rows["rank"] if generic is None else rows.where("rank", generic=generic)
    return float((table.measured - table[formula]).abs().max())


@draws
def held(rows: Rows, column: str, provision: float = 0.05, wide: bool = True) -> "Series[float]":
    """Return a column of the rows about networks that store all distributions.

    Args:
        rows: The rows of the result.
        column: Name of the column.
        provision: Additional features, as a share of the number of contexts.
        wide: Whether to select the wide network.
    """
    table = rows["held"]
    width = table.width.max() if wide else table.width.min()
    return table[(table.width == width) & (table.provision == provision)].groupby("seed")[column].mean()


@draws
def digits(rows: Rows, column: str, provision: float) -> "Series[float]":
    """Return the decimal logarithm of `held` for the narrow network."""
    return held(column, provision, False)(rows).map(math.log10)


@draws
def association(rows: Rows, column: str, heads: int) -> "Series[float]":
    """Return a column of the rows about networks that store associations in two dimensions."""
    return rows.where("association", heads=heads).groupby("seed")[column].mean()


@draws
def beyond_bound(rows: Rows) -> "Series[float]":
    """Return the accuracy minus the bound, averaged over networks that do not store all contexts."""
    table = rows["association"].query("stored < contexts")
    return (table.accuracy - table.bound).groupby(table.seed).mean()


@draws
def approximate(rows: Rows, column: str, heads: int) -> "Series[float]":
    """Return a column of the rows about networks that store the most likely contexts."""
    return rows.where("approximate", heads=heads).groupby("seed")[column].mean()


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """Return the smallest logarithm of the ratio of a bound to |KL (network) - KL (encoder)|."""
    return float(np.log(_slack(rows, bound)).min())


@draws
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """Return the decimal logarithm of the ratio of a bound to the quantity that it bounds, averaged over heads."""
    return _slack(rows, bound).map(math.log10).groupby("seed").mean()


def _slack(rows: Rows, bound: str) -> "Series[float]":
    """Return the ratio of a bound to the quantity that it bounds."""
    table = rows["approximate"].query("left > 0").set_index("seed")
    return table[bound] / (table.kl - table.encoder_kl).abs()


@draws
def ridge_gain(rows: Rows) -> "Series[float]":
    """Return the decimal logarithm of the ratio of the KL of Theorem 1 to the KL of ridge regression, averaged."""
    table = rows["approximate"].query("left > 0")
    return (table.kl / table.ridge).map(math.log10).groupby(table.seed).mean()


@draws
def encoder(rows: Rows, column: str, width: int) -> "Series[float]":
    """Return a divergence of the encoders of one width, in nats."""
    return rows.where("encoder", width=width).groupby("seed")[column].mean()


@draws
def log_optimum_ratio(rows: Rows) -> "Series[float]":
    """Return the logarithm of the ratio of the optimized encoder's KL to the truncated one's, averaged over widths."""
    table = rows["encoder"].query("width < width.max()")
    return (table.nearest / table.truncated).map(math.log).groupby(table.seed).mean()


@exact
def look_up_slack(rows: Rows, bound: str) -> float:
    """Return the smallest difference over seeds between a bound of Theorem 2 and the KL of its encoder."""
    return float((rows["look-up"][bound] - rows["look-up"].kl).min())
