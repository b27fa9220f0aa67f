"""Statistics of the study about random networks that are pruned to approximate a target.

Pruning sets some random weights to zero and leaves the others unchanged. Counts of differences have one number for the
run. All other statistics have one number per seed.
"""

import numpy as np
from pandas import DataFrame, Series
from scipy.stats import linregress

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact

draws = Replication("draw", "seeds")


def _fits(table: DataFrame, column: str) -> DataFrame:
    """Return slope and R^2 of log10(error) against a column, by seed."""
    fits = {seed: linregress(own[column], np.log10(own.error)) for seed, own in table.groupby("seed")}
    found = {seed: {"slope": fit.slope, "r_squared": fit.rvalue**2} for seed, fit in fits.items()}
    return DataFrame.from_dict(found, orient="index")


@draws
def error(rows: Rows, /, kind: str, **values: object) -> "Series[float]":
    """Return the error with which a pruned random network approximates a target.

    Pruning sets some random weights to zero and leaves the others unchanged.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        kind: Kind of target: "number", "matrix", "scores" (attention scores), "layers" (two layers) or "transformer".
        **values: Values of other columns that select the rows, for example `size=2`.

    Returns:
        One mean error over the selected rows per seed.
    """
    return rows.where(kind, **values).groupby("seed").error.mean()


@draws
def numbers_fall(rows: Rows) -> "Series[float]":
    """Return how fast the error of approximating a number decreases with more random products.

    The number is approximated by the sum over a subset of products of two random weights. The error is the largest one
    over several target numbers.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One slope per seed: change of log10(error) per additional product.
    """
    return _fits(rows["number"], "count")["slope"]


@draws
def matrices_fall(rows: Rows, size: int) -> "Series[float]":
    """Return how fast the error of approximating a matrix decreases with more hidden units.

    The matrix is approximated by a random network with two layers, some of whose weights are set to zero.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        size: Number of rows and columns of the matrix.

    Returns:
        One slope per seed: change of log10(error) per hidden unit for each input and sign.
    """
    return _fits(rows.where("matrix", size=size), "units")["slope"]


@draws
def straightness(rows: Rows, size: int) -> "Series[float]":
    """Return how well an exponential function describes the error of approximating a matrix.

    The matrix is approximated by a random network with two layers, some of whose weights are set to zero. The logarithm
    of the error is fitted by a linear function of the number of hidden units.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        size: Number of rows and columns of the matrix.

    Returns:
        One R^2 of the linear fit per seed.
    """
    return _fits(rows.where("matrix", size=size), "units")["r_squared"]


@draws
def falls(rows: Rows, kind: str) -> "Series[float]":
    """Return how fast the error of approximating a target decreases with more hidden units.

    The target is approximated by a random network, some of whose weights are set to zero.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        kind: Kind of target, "scores" for attention scores or "layers" for two layers.

    Returns:
        One slope per seed: change of log10(error) per hidden unit for each input and sign.
    """
    return _fits(rows[kind], "units")["slope"]


@draws
def transformers_fall(rows: Rows, layers: int) -> "Series[float]":
    """Return how fast the error of approximating a transformer decreases with the width.

    The target is approximated by a random transformer, some of whose weights are set to zero.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        layers: Number of layers of the target.

    Returns:
        One slope per seed: change of log10(error) per additional hidden unit.
    """
    return _fits(rows.where("transformer", layers=layers, first=0), "hidden")["slope"]


@draws
def both_transformers_within(rows: Rows, layers: int, hidden: int, eps: float) -> Counts:
    """Count the random transformers that approximate both of two target transformers after pruning.

    Pruning sets some weights to zero and leaves the others unchanged. For targets with one layer, several positions of
    this layer in the random transformer are tried, and both errors must be small for all of them.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        layers: Number of layers of the targets.
        hidden: Width of the random transformer.
        eps: Both errors must be smaller than `eps`.

    Returns:
        One success or failure per seed.
    """
    table = rows.where("transformer", layers=layers, hidden=hidden)
    within = (table.error < eps) & (table.other_error < eps)
    return counts_from_shares(within.groupby(table.seed).all(), trials=1)


@exact
def different_shared_layers(rows: Rows) -> float:
    """Return the number of pairs of pruned transformers whose unused layers are not identical.

    Both transformers of a pair are pruned from the same random transformer, to two different targets.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return float((~rows["transformer"].same.astype(bool)).sum())


@draws
def both_within(rows: Rows, size: int, units: int, eps: float) -> Counts:
    """Count the random networks that approximate both of two target matrices after pruning.

    Pruning sets some weights to zero and leaves the others unchanged.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        size: Number of rows and columns of the targets.
        units: Number of hidden units per input and sign.
        eps: Both errors must be smaller than `eps`.

    Returns:
        One success or failure per seed.
    """
    table = rows.where("matrix", size=size, units=units).set_index("seed")
    return counts_from_shares((table.error < eps) & (table.other_error < eps), trials=1)


@exact
def different_first(rows: Rows) -> float:
    """Return the number of pairs of pruned networks whose first weight matrices are not identical.

    Both networks of a pair are pruned from the same random network, to two different target matrices.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return float((~rows["matrix"].same_first.astype(bool)).sum())
