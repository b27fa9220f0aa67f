"""Statistics of the study: exact numbers of each task, and costs by seed."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.solution_first.config import PRODUCT_FIRST

costs = Replication("draw", "cost_seeds")


def select_variations(rows: Rows) -> DataFrame:
    """Return the errors of sampling random primes partly by their approximate density, as a table.

    Digits are sampled one by one: the first ones by the approximate density of primes, and the last ones by exact
    counts. The error is the total variation distance from a uniformly random prime.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        A table with one row per number of digits of the primes, and one column per number of exactly sampled last
        digits.
    """
    return rows["density"].pivot(index="digits", columns="counted", values="variation").sort_index()


@exact
def leading_fall(rows: Rows) -> float:
    """Return the largest increase of the error of sampling leading digits of primes, if primes are one digit longer.

        increase = log(error for primes of n + 1 digits / error for primes of n digits)

    The first k of n digits are sampled by the approximate density of primes. The error is the total variation
    distance from the first k digits of a uniformly random prime.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The maximum over n and over k < n - 1. If it is negative, longer primes always have smaller errors.
    """
    table = rows["density"].query("counted > 1").pivot(index="digits", columns="length", values="variation")
    return _compute_largest_log_ratio(table)


@exact
def counted_fall(rows: Rows, counted: int) -> float:
    """Return the largest increase of the error of sampling random primes, if primes are one digit longer.

        increase = log(error for primes of n + 1 digits / error for primes of n digits)

    The last digits are sampled by exact counts of primes, and the first ones by their approximate density.
    The error is the total variation distance from a uniformly random prime.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        counted: Number of last digits that are sampled by exact counts.

    Returns:
        The maximum over n. If it is negative, longer primes always have smaller errors.
    """
    return _compute_largest_log_ratio(select_variations(rows)[[counted]])


def _compute_largest_log_ratio(table: DataFrame) -> float:
    """Return the largest log(entry / entry above it) in a table."""
    ratios = table.apply(np.log).diff().to_numpy()
    if np.isnan(ratios).all():
        raise NoRows("a trend needs at least two sizes")
    return float(np.nanmax(ratios))


@costs
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return how fast the cost of writing a product before its factors grows with the number n of digits.

    The factors are two primes of n digits. The most expensive digit of the product determines the cost. The result is
    the slope of a line that is fitted to log10(cost) as a function of n.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Kind of cost: "tests" (primality tests), "products" (multiplications) or "factoring_steps".

    Returns:
        One slope per seed. A slope of 1 means a tenfold cost per additional digit.
    """
    table = rows.where("first number", order=PRODUCT_FIRST).pivot_table(column, "seed", "digits", "max")
    return Series(np.polyfit(table.columns, np.log10(table).T, 1)[0], table.index)
