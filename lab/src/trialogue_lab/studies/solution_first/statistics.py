"""Statistics of the study: exact numbers of each task, and costs by seed."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.solution_first.config import PRODUCT_FIRST

costs = Replication("draw", "cost_seeds")


def variations(rows: Rows) -> DataFrame:
    """Return the TV of primes by density, by total digits (index) and number of exact last digits (columns)."""
    return rows["density"].pivot(index="digits", columns="counted", values="variation").sort_index()


@exact
def leading_fall(rows: Rows) -> float:
    """Return the largest log ratio of the TV of the first k digits, from n to n + 1 digits, for k below n - 1."""
    table = rows["density"].query("counted > 1").pivot(index="digits", columns="length", values="variation")
    return _largest_log_ratio(table)


@exact
def counted_fall(rows: Rows, counted: int) -> float:
    """Return the largest log ratio of the TV of primes, from n to n + 1 digits, for `counted` exact last digits."""
    return _largest_log_ratio(variations(rows)[[counted]])


def _largest_log_ratio(table: DataFrame) -> float:
    """Return the largest log ratio of a value to the value one row above."""
    ratios = table.apply(np.log).diff().to_numpy()
    if np.isnan(ratios).all():
        raise NoRows("a trend needs at least two sizes")
    return float(np.nanmax(ratios))


@costs
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return the least-squares slope, per digit of the primes, of the decimal logarithm of a cost.

    The most expensive digit of the product determines the cost.
    """
    table = rows.where("first number", order=PRODUCT_FIRST).pivot_table(column, "seed", "digits", "max")
    return Series(np.polyfit(table.columns, np.log10(table).T, 1)[0], table.index)
