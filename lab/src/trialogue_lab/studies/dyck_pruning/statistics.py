"""Quantities of the study, by draw."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.ledger.claims.statistics import Counts

draws = Replication("draw", "seeds")


def _fits(table: DataFrame, place: str) -> DataFrame:
    """Slope and R^2 of the decimal logarithm of the error over `place`, by seed."""
    found = {}
    for seed, own in table.groupby("seed"):
        x, y = own[place].to_numpy(float), np.log10(own.error.to_numpy(float))
        slope = float(np.polyfit(x, y, 1)[0])
        found[seed] = {"slope": slope, "r_squared": float(np.corrcoef(x, y)[0, 1] ** 2)}
    return DataFrame.from_dict(found, orient="index")


@draws
def number_error(rows: Rows, count: int) -> "Series[float]":
    """How far the nearest subset of so many products is from a number, the worst of some."""
    return rows.where("number", count=count).groupby("seed").error.mean()


@draws
def matrix_error(rows: Rows, size: int, units: int) -> "Series[float]":
    """How far the pruned network is from a matrix of the size, for inputs of length 1."""
    return rows.where("matrix", size=size, units=units).groupby("seed").error.mean()


@draws
def numbers_fall(rows: Rows) -> "Series[float]":
    """Decades of error for each product more."""
    return _fits(rows["number"], "count")["slope"]


@draws
def matrices_fall(rows: Rows, size: int) -> "Series[float]":
    """Decades of error for each unit more."""
    return _fits(rows.where("matrix", size=size), "units")["slope"]


@draws
def straightness(rows: Rows, size: int) -> "Series[float]":
    """R^2 of the line through the logarithms of errors."""
    return _fits(rows.where("matrix", size=size), "units")["r_squared"]


@draws
def falls(rows: Rows, kind: str) -> "Series[float]":
    """Decades of error for each unit more, of scores or of two layers."""
    return _fits(rows[kind], "units")["slope"]


@draws
def transformer_error(rows: Rows, layers: int, hidden: int) -> "Series[float]":
    """How far the pruned transformer is from the target at most, for inputs of length 1."""
    return rows.where("transformer", layers=layers, hidden=hidden, first=0).groupby("seed").error.mean()


@draws
def transformers_fall(rows: Rows, layers: int) -> "Series[float]":
    """Decades of error for each hidden unit more, of whole transformers."""
    return _fits(rows.where("transformer", layers=layers, first=0), "hidden")["slope"]


@draws
def both_transformers_within(rows: Rows, layers: int, hidden: int, eps: float) -> Counts:
    """In which draws two targets are approximated within `eps`, wherever the layers are that they share."""
    table = rows.where("transformer", layers=layers, hidden=hidden)
    within = (table.error < eps) & (table.other_error < eps)
    found = within.groupby(table.seed).all().astype(int)
    return Counts(found, found * 0 + 1)


@exact
def different_shared_layers(rows: Rows) -> float:
    """In how many cases layers that two pruned transformers are to share differ."""
    return float((~rows["transformer"].same.astype(bool)).sum())


@draws
def both_within(rows: Rows, size: int, units: int, eps: float) -> Counts:
    """In which draws networks pruned to two targets, from the same weights, are both within `eps`."""
    table = rows.where("matrix", size=size, units=units).set_index("seed")
    within = (table.error < eps) & (table.other_error < eps)
    return Counts(within.astype(int), within.astype(int) * 0 + 1)


@exact
def different_first(rows: Rows) -> float:
    """In how many draws the first matrices of networks pruned to two targets differ."""
    return float((~rows["matrix"].same_first.astype(bool)).sum())
