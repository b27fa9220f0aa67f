"""Quantities of the study: exact ones of ranks, the others by seed."""

import math

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

draws = Replication("draw", "seeds")


@exact
def rank_error(rows: Rows, law: str, generic: bool | None = None) -> float:
    """The largest difference of the measured rank from one of the laws, over shapes."""
    table = rows["rank"] if generic is None else rows.where("rank", generic=generic)
    return float((table.measured - table[law]).abs().max())


@draws
def held(rows: Rows, column: str, provision: float = 0.05, wide: bool = True) -> "Series[float]":
    """A number of the network that holds all laws, with so many features to spare."""
    table = rows["held"]
    width = table.width.max() if wide else table.width.min()
    return table[(table.width == width) & (table.provision == provision)].groupby("seed")[column].mean()


@draws
def digits(rows: Rows, column: str, provision: float) -> "Series[float]":
    """The decimal logarithm of a number of the narrow one of these networks."""
    return held(column, provision, False)(rows).map(math.log10)


@draws
def association(rows: Rows, column: str, heads: int) -> "Series[float]":
    """A number of the network of so many heads that stores associations on a circle."""
    return rows.where("association", heads=heads).groupby("seed")[column].mean()


@draws
def beyond_bound(rows: Rows) -> "Series[float]":
    """Accuracy less the bound, mean over numbers of heads that do not hold all contexts."""
    table = rows["association"].query("stored < contexts")
    return (table.accuracy - table.bound).groupby(table.seed).mean()


@draws
def approximate(rows: Rows, column: str, heads: int) -> "Series[float]":
    """A number of the network whose heads hold the likeliest contexts."""
    return rows.where("approximate", heads=heads).groupby("seed")[column].mean()


@exact
def least_slack(rows: Rows, bound: str) -> float:
    """The logarithm of a bound over |kl - encoder_kl|, the least over draws and heads."""
    table = rows["approximate"].query("left > 0")
    return float(np.log(table[bound] / (table.kl - table.encoder_kl).abs()).min())


@draws
def tightness(rows: Rows, bound: str) -> "Series[float]":
    """The decimal logarithm of a bound over what it bounds, mean over heads."""
    table = rows["approximate"].query("left > 0")
    return (table[bound] / (table.kl - table.encoder_kl).abs()).map(math.log10).groupby(table.seed).mean()


@draws
def ridge_gain(rows: Rows) -> "Series[float]":
    """The decimal logarithm of Theorem 1's divergence over that of ridge regression, mean over heads."""
    table = rows["approximate"].query("left > 0")
    return (table.kl / table.ridge).map(math.log10).groupby(table.seed).mean()


@draws
def encoder(rows: Rows, column: str, width: int) -> "Series[float]":
    """A distance of encoders."""
    return rows.where("encoder", width=width).groupby("seed")[column].mean()


@draws
def log_optimum_ratio(rows: Rows) -> "Series[float]":
    """The logarithm of the optimised encoder's distance over the truncated one's, mean over widths."""
    table = rows["encoder"].query("width < width.max()")
    return (table.nearest / table.truncated).map(math.log).groupby(table.seed).mean()


@exact
def look_up_slack(rows: Rows, bound: str) -> float:
    """A bound of Theorem 2 less the distance of its encoder, the least over draws."""
    return float((rows["look-up"][bound] - rows["look-up"].kl).min())
