"""Statistics of the study about random networks that are pruned to approximate a target.

Pruning sets some random weights to zero and leaves the others unchanged. Most statistics have one number per seed.
Statistics that count differences between networks have one number per run.
"""

import numpy as np
from pandas import DataFrame, Series
from scipy.stats import linregress

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact

draws = Replication("draw", "seeds")


def _fit_error_decrease(table: DataFrame, column: str) -> DataFrame:
    """Fit log10(error) linearly as a function of a column, and return the slope and R^2 by seed."""
    fits = {seed: linregress(own[column], np.log10(own.error)) for seed, own in table.groupby("seed")}
    found = {seed: {"slope": fit.slope, "r_squared": fit.rvalue**2} for seed, fit in fits.items()}
    return DataFrame.from_dict(found, orient="index")


@draws
def error(rows: Rows, /, kind: str, **values: object) -> "Series[float]":
    """Return the error with which a pruned random network approximates a target.

    Pruning sets some random weights to zero and leaves the others unchanged.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of target: "number", "matrix", "scores" (attention scores), "layers" (two-layer network) or
            "transformer".
        **values: Values of other columns that select the rows, for example `size=2`.

    Returns:
        One mean error over the selected rows per seed.
    """
    return rows.where(kind, **values).groupby("seed").error.mean()


@draws
def numbers_fall(rows: Rows) -> "Series[float]":
    """Return the slope of log10(error of approximating a number) over the number of random products.

    A number is approximated by the sum of a subset of products of two random weights. The error is the largest one over
    several numbers. The result is the slope of a linear fit of log10(error).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One slope per seed. It is negative if more products give a smaller error.
    """
    return _fit_error_decrease(rows["number"], "count")["slope"]


@draws
def matrices_fall(rows: Rows, size: int) -> "Series[float]":
    """Return the slope of log10(error of approximating a matrix) over the number of hidden units.

    The matrix is approximated by a random two-layer network, some of whose weights are set to zero. Hidden units are
    counted for each input and each sign. The result is the slope of a linear fit of log10(error).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        size: Number of rows and columns of the matrix.

    Returns:
        One slope per seed. It is negative if wider networks have a smaller error.
    """
    return _fit_error_decrease(rows.where("matrix", size=size), "units")["slope"]


@draws
def straightness(rows: Rows, size: int) -> "Series[float]":
    """Return the R^2 of an exponential fit to the error of pruned networks as a function of their width.

    A matrix is approximated by a random two-layer network, some of whose weights are set to zero. The fit is a line
    through log10(error). An R^2 near 1 means that the error decreases exponentially.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        size: Number of rows and columns of the matrix.

    Returns:
        One R^2 per seed.
    """
    return _fit_error_decrease(rows.where("matrix", size=size), "units")["r_squared"]


@draws
def falls(rows: Rows, kind: str) -> "Series[float]":
    """Return the slope of log10(error of approximating a target) over the number of hidden units.

    The target is approximated by a random network, some of whose weights are set to zero. Hidden units are counted for
    each input and each sign. The result is the slope of a linear fit of log10(error).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of target, "scores" for attention scores or "layers" for a two-layer network.

    Returns:
        One slope per seed. It is negative if wider networks have a smaller error.
    """
    return _fit_error_decrease(rows[kind], "units")["slope"]


@draws
def transformers_fall(rows: Rows, layers: int) -> "Series[float]":
    """Return the slope of log10(error of approximating a transformer) over the width.

    The target is approximated by a wider and deeper random transformer, some of whose weights are set to zero. The
    width is that of its keys and hidden layers. The result is the slope of a linear fit of log10(error).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        layers: Number of layers of the target.

    Returns:
        One slope per seed. It is negative if wider transformers have a smaller error.
    """
    return _fit_error_decrease(rows.where("transformer", layers=layers, first=0), "hidden")["slope"]


@draws
def both_transformers_within(rows: Rows, layers: int, hidden: int, eps: float) -> Counts:
    """Count the random transformers that can be pruned to either of two target transformers.

    Pruning sets some weights to zero and leaves the others unchanged. A random transformer counts if both
    pruned transformers differ from their targets by less than `eps`.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        layers: Number of layers of the targets.
        hidden: Width of the random transformer.
        eps: Upper limit of both errors.

    Returns:
        One success or failure per seed.
    """
    table = rows.where("transformer", layers=layers, hidden=hidden)
    within = (table.error < eps) & (table.other_error < eps)
    return counts_from_shares(within.groupby(table.seed).all(), trials=1)


@exact
def different_shared_layers(rows: Rows) -> float:
    """Return the number of pairs of pruned transformers whose unused layers differ.

    Both transformers of a pair are pruned from the same random transformer, to approximate two different targets. The
    unused layers are those that compute the identity.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return float((~rows["transformer"].same.astype(bool)).sum())


@draws
def both_within(rows: Rows, size: int, units: int, eps: float) -> Counts:
    """Count the random networks that can be pruned to either of two target matrices.

    Pruning sets some weights to zero and leaves the others unchanged. A random network counts if both errors are below
    `eps`.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        size: Number of rows and columns of the targets.
        units: Number of hidden units for each input and each sign.
        eps: Upper limit of both errors.

    Returns:
        One success or failure per seed.
    """
    table = rows.where("matrix", size=size, units=units).set_index("seed")
    return counts_from_shares((table.error < eps) & (table.other_error < eps), trials=1)


@exact
def different_first(rows: Rows) -> float:
    """Return the number of pairs of pruned networks whose first weight matrices differ.

    Both networks of a pair are pruned from the same random network, to approximate two different matrices.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return float((~rows["matrix"].same_first.astype(bool)).sum())
