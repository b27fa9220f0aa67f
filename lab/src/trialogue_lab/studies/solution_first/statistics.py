"""Quantities of the study: exact numbers of each task, and costs by seed."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.solution_first.config import PRODUCT_FIRST

costs = Replication("draw", "cost_seeds")


@exact
def looks(rows: Rows, player: str, objects: int, asked: int) -> float:
    """Looks for one answer after so many answers, mean over games."""
    return float(rows.where("question", objects=objects, asked=asked)[player].iloc[0])


@exact
def sudoku(rows: Rows, column: str, clues: int, order: str) -> float:
    """A number about Sudoku puzzles in one order."""
    return float(rows.where("sudoku", clues=clues, order=order)[column].iloc[0])


def variations(rows: Rows) -> DataFrame:
    """TV by density alone, by the number of digits that are counted after it (columns) and of all (index)."""
    return rows["density"].pivot(index="digits", columns="counted", values="variation").sort_index()


@exact
def leading_fall(rows: Rows) -> float:
    """Log ratio of the TV of the first k digits at n + 1 and at n, the largest over n and k below n - 1."""
    table = rows["density"].query("counted > 1").pivot(index="digits", columns="length", values="variation")
    return _largest_log_ratio(table, 1)


@exact
def counted_fall(rows: Rows, counted: int) -> float:
    """Log ratio of the TV of whole primes at n + 1 and at n, so many digits counted, the largest over n."""
    return _largest_log_ratio(variations(rows)[[counted]], 1)


def _largest_log_ratio(table: DataFrame, digits: int) -> float:
    """Largest log ratio of a value and the one `digits` rows above it."""
    falls = table.apply(np.log).diff(digits).to_numpy()
    if np.isnan(falls).all():
        raise NoRows("one size is no trend")
    return float(np.nanmax(falls))


@costs
def dearest(rows: Rows, column: str, order: str, digits: int) -> "Series[float]":
    """Operations for the dearest digit of the tuple's first number."""
    return rows.where("first number", order=order, digits=digits).groupby("seed")[column].max()


@costs
def growth(rows: Rows, column: str) -> "Series[float]":
    """Decimal logarithm of the cost of the dearest digit of the product, per digit of the primes, by least squares."""
    table = rows.where("first number", order=PRODUCT_FIRST).pivot_table(column, "seed", "digits", "max")
    slopes = [float(np.polyfit(table.columns, np.log10(row), 1)[0]) for row in table.to_numpy()]
    return Series(slopes, table.index)
