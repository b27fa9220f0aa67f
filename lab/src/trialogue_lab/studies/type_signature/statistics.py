"""Statistics of the study: exact numbers, costs by seed, and results of trainings."""

import math

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.type_signature.config import HIDDEN

costs = Replication("draw", "cost_seeds")
trainings = Replication("training", "training_seeds")


@exact
def trials_over_bound(rows: Rows) -> float:
    """Return the largest expected number of trials for a digit of a random prime, divided by n ln 10."""
    return float((rows["trials"].trials / rows["trials"].digits / math.log(10)).max())


@exact
def factored(rows: Rows, digits: int) -> float:
    """Return the number of semiprimes with factors of this many digits that the reduction factors."""
    return float(rows["reduction"].set_index("digits").factored[digits])


@exact
def unfactored(rows: Rows) -> float:
    """Return the number of semiprimes of all sizes that the reduction does not factor."""
    return float((rows["reduction"].semiprimes - rows["reduction"].factored).sum())


@exact
def hidden_factorings(rows: Rows) -> float:
    """Return the number of factorings by oracles with a hidden stream or a random seed."""
    return float(rows.where("law", stream=HIDDEN).factorings.sum() + rows["seed"].factorings.sum())


@exact
def largest(rows: Rows, /, kind: str, column: str = "variation", **values: object) -> float:
    """Return the largest value of a column over the rows of a kind with the given values."""
    return float(rows.where(kind, **values)[column].max())


@exact
def largest_excess(rows: Rows, kind: str, column: str) -> float:
    """Return the largest difference between a column and its bound."""
    return float((rows[kind][column] - rows[kind].bound).max())


@exact
def largest_gap(rows: Rows, kind: str, first: str, second: str) -> float:
    """Return the largest distance between two columns."""
    return float((rows[kind][first] - rows[kind][second]).abs().max())


@exact
def density_error(rows: Rows, counted: int) -> float:
    """Return the total variation of complete primes by density from random primes, for the largest n."""
    of_largest = rows.where("density", digits=rows["density"].digits.max(), counted=counted)
    return float(of_largest.sort_values("length").variation.iloc[-1])


@exact
def largest_fall(rows: Rows, least: int) -> float:
    """Return the largest ratio of the shares factored at n + 1 and n digits, over budgets and n >= `least`.

    Only budgets that factor some tuples of n + 1 digits, but not all, are compared.
    """
    shares = rows["support"].query(f"digits >= {least}").pivot_table("share", "digits", "exponent")
    return float((shares / shares.shift())[(shares > 0) & (shares < 1)].max().max())


@costs
def cost(rows: Rows, routine: str, digits: int) -> "Series[float]":
    """Return the mean operations for the first digit of the second number."""
    return rows.where("cost", routine=routine, digits=digits).set_index("seed").cost


@costs
def growth(rows: Rows, routine: str) -> "Series[float]":
    """Return the growth of log10 of the cost per digit of the primes, by least squares."""
    table = rows.where("cost", routine=routine).pivot_table("cost", "seed", "digits")
    slopes = [float(np.polyfit(table.columns, np.log10(row), 1)[0]) for row in table.to_numpy()]
    return Series(slopes, table.index)


@costs
def growth_factor(rows: Rows, routine: str) -> "Series[float]":
    """Return the factor by which the cost grows per digit of the primes."""
    return 10 ** growth(routine)(rows)


@trainings
def learned(rows: Rows, column: str, stream: str, digits: int) -> "Series[float]":
    """Return a column of the networks with this stream and size."""
    return rows.where("network", stream=stream, digits=digits).set_index("seed")[column]


@trainings
def least_valid(rows: Rows, digits: int) -> "Series[float]":
    """Return the share of valid tuples, the smallest over streams."""
    return rows.where("network", digits=digits).groupby("seed").valid.min()
