"""Statistics of the study: exact numbers of each task, and costs by seed."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.solution_first.config import PRODUCT_FIRST

costs = Replication("draw", "cost_seeds")


def variations(rows: Rows) -> DataFrame:
    """Return distances of primes sampled digit by digit from uniformly distributed primes.

    The first digits are sampled by the approximate density of primes, and the last digits by exact counts. Distances
    are total variations.

    Returns:
        One row per number of digits of the primes, and one column per number of exact last digits.
    """
    return rows["density"].pivot(index="digits", columns="counted", values="variation").sort_index()


@exact
def leading_fall(rows: Rows) -> float:
    """Return the largest log ratio of the errors of leading digits between primes of n + 1 and n digits.

    The error is the total variation of the first k digits if they are sampled by the approximate density of primes. The
    maximum is over n and k < n - 1. It is negative if errors always fall with n.
    """
    table = rows["density"].query("counted > 1").pivot(index="digits", columns="length", values="variation")
    return _largest_log_ratio(table)


@exact
def counted_fall(rows: Rows, counted: int) -> float:
    """Return the largest log ratio of the errors of sampled primes between n + 1 and n digits.

    The error is the total variation from uniformly distributed primes. The maximum is over n, and is negative if errors
    always fall with n.

    Args:
        rows: Measured rows of a run, by kind.
        counted: Number of last digits that are sampled by exact counts.
    """
    return _largest_log_ratio(variations(rows)[[counted]])


def _largest_log_ratio(table: DataFrame) -> float:
    """Return the largest log ratio of a value to the value one row above."""
    ratios = table.apply(np.log).diff().to_numpy()
    if np.isnan(ratios).all():
        raise NoRows("a trend needs at least two sizes")
    return float(np.nanmax(ratios))


@costs
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return how fast the cost of generating a product before its factors grows with the digits of the primes.

    Args:
        rows: Measured rows of a run, by kind.
        column: Kind of cost: "tests" (primality tests), "products" or "factoring_steps", for the most expensive digit.

    Returns:
        One least-squares slope of log10(cost) per digit of the primes and seed.
    """
    table = rows.where("first number", order=PRODUCT_FIRST).pivot_table(column, "seed", "digits", "max")
    return Series(np.polyfit(table.columns, np.log10(table).T, 1)[0], table.index)
