"""Statistics of the study, with one number per seed."""

import numpy as np
from pandas import DataFrame, Series
from scipy.stats import linregress

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact

draws = Replication("draw", "seeds")


def _fits(table: DataFrame, column: str) -> DataFrame:
    """Return slope and R^2 of the decimal logarithm of the error against a column, by seed."""
    fits = {seed: linregress(own[column], np.log10(own.error)) for seed, own in table.groupby("seed")}
    found = {seed: {"slope": fit.slope, "r_squared": fit.rvalue**2} for seed, fit in fits.items()}
    return DataFrame.from_dict(found, orient="index")


@draws
def error(rows: Rows, /, kind: str, **values: object) -> "Series[float]":
    """Error of the pruned weights of a kind: "number", "matrix" or "transformer"."""
    return rows.where(kind, **values).groupby("seed").error.mean()


@draws
def numbers_fall(rows: Rows) -> "Series[float]":
    """Change of the error of a number, in decades per additional product."""
    return _fits(rows["number"], "count")["slope"]


@draws
def matrices_fall(rows: Rows, size: int) -> "Series[float]":
    """Change of the error of a matrix, in decades per additional unit."""
    return _fits(rows.where("matrix", size=size), "units")["slope"]


@draws
def straightness(rows: Rows, size: int) -> "Series[float]":
    """R^2 of the line through the logarithms of the errors of a matrix."""
    return _fits(rows.where("matrix", size=size), "units")["r_squared"]


@draws
def falls(rows: Rows, kind: str) -> "Series[float]":
    """Change of the error of "scores" or two "layers", in decades per additional unit."""
    return _fits(rows[kind], "units")["slope"]


@draws
def transformers_fall(rows: Rows, layers: int) -> "Series[float]":
    """Change of the error of whole transformers, in decades per additional hidden unit."""
    return _fits(rows.where("transformer", layers=layers, first=0), "hidden")["slope"]


@draws
def both_transformers_within(rows: Rows, layers: int, hidden: int, eps: float) -> Counts:
    """Whether two targets are approximated within `eps`, at every position of the shared layers."""
    table = rows.where("transformer", layers=layers, hidden=hidden)
    within = (table.error < eps) & (table.other_error < eps)
    return counts_from_shares(within.groupby(table.seed).all(), trials=1)


@exact
def different_shared_layers(rows: Rows) -> float:
    """Number of cases in which the shared layers of two pruned transformers differ."""
    return float((~rows["transformer"].same.astype(bool)).sum())


@draws
def both_within(rows: Rows, size: int, units: int, eps: float) -> Counts:
    """Whether two target matrices are approximated within `eps` by networks pruned from the same weights."""
    table = rows.where("matrix", size=size, units=units).set_index("seed")
    return counts_from_shares((table.error < eps) & (table.other_error < eps), trials=1)


@exact
def different_first(rows: Rows) -> float:
    """Number of cases in which the first matrices of networks pruned to two targets differ."""
    return float((~rows["matrix"].same_first.astype(bool)).sum())
