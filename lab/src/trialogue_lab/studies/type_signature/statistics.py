"""Quantities of the study: exact numbers, costs by seed, and what was learned by training."""

import math

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.type_signature.config import HIDDEN

costs = Replication("draw", "cost_seeds")
trainings = Replication("training", "training_seeds")


@exact
def trials_over_bound(rows: Rows) -> float:
    """Expected trials for a digit of a random prime over n ln 10, the largest."""
    return float((rows["trials"].trials / rows["trials"].digits / math.log(10)).max())


@exact
def factored(rows: Rows, digits: int) -> float:
    """Semiprimes with factors of so many digits that the reduction factors."""
    return float(rows["reduction"].set_index("digits").factored[digits])


@exact
def unfactored(rows: Rows) -> float:
    """Semiprimes that the reduction does not factor, of all sizes."""
    return float((rows["reduction"].semiprimes - rows["reduction"].factored).sum())


@exact
def hidden_factorings(rows: Rows) -> float:
    """Factorings of the oracles with a hidden stream or a random seed."""
    return float(rows.where("law", stream=HIDDEN).factorings.sum() + rows["seed"].factorings.sum())


@exact
def largest(rows: Rows, /, kind: str, column: str = "variation", **values: object) -> float:
    """Largest number of a column over the rows of a kind whose columns have the given values."""
    return float(rows.where(kind, **values)[column].max())


@exact
def largest_excess(rows: Rows, kind: str, column: str) -> float:
    """Largest difference of a column and the bound beside it."""
    return float((rows[kind][column] - rows[kind].bound).max())


@exact
def largest_gap(rows: Rows, kind: str, first: str, second: str) -> float:
    """Largest distance between two columns."""
    return float((rows[kind][first] - rows[kind][second]).abs().max())


@exact
def density_error(rows: Rows, counted: int) -> float:
    """Total variation of whole primes by density from random ones, of the largest n; `counted` digits are counted."""
    of_largest = rows.where("density", digits=rows["density"].digits.max(), counted=counted)
    return float(of_largest.sort_values("length").variation.iloc[-1])


@exact
def largest_fall(rows: Rows, least: int) -> float:
    """Share of the tuples that a budget factors at n + 1 digits over that at n, the largest over budgets and n.

    Only n from `least` on count, and sizes n + 1 of which a budget factors some tuples and not all: beyond, the share
    is zero by counting.
    """
    shares = rows["support"].query(f"digits >= {least}").pivot_table("share", "digits", "exponent")
    return float((shares / shares.shift())[(shares > 0) & (shares < 1)].max().max())


@costs
def cost(rows: Rows, routine: str, digits: int) -> "Series[float]":
    """Mean operations for the first digit of the tuple's second number."""
    return rows.where("cost", routine=routine, digits=digits).set_index("seed").cost


@costs
def growth(rows: Rows, routine: str) -> "Series[float]":
    """Decimal logarithm of the cost per further digit of the primes, by least squares."""
    table = rows.where("cost", routine=routine).pivot_table("cost", "seed", "digits")
    slopes = [float(np.polyfit(table.columns, np.log10(row), 1)[0]) for row in table.to_numpy()]
    return Series(slopes, table.index)


@costs
def growth_factor(rows: Rows, routine: str) -> "Series[float]":
    """By what factor the cost grows per further digit of the primes."""
    return 10 ** growth(routine)(rows)


@trainings
def learned(rows: Rows, column: str, stream: str, digits: int) -> "Series[float]":
    """A number of the networks of one stream and size."""
    return rows.where("network", stream=stream, digits=digits).set_index("seed")[column]


@trainings
def least_valid(rows: Rows, digits: int) -> "Series[float]":
    """Share of valid tuples, the least over streams."""
    return rows.where("network", digits=digits).groupby("seed").valid.min()


@trainings
def missed(rows: Rows, stream: str, digits: int, position: int) -> "Series[float]":
    """Excess over the law at one position of the sequence, in nats."""
    table = rows.where("position", stream=stream, digits=digits, position=position)
    return table.set_index("seed").excess
