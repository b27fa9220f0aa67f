"""Statistics of the study about generating tuples [pq, p, q] of a semiprime and its factors.

p and q are primes with n digits. Writing the product before the factors requires the model to factor it. A stream is an
order of the three numbers, possibly after hidden tokens with p and q.
"""

import math

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.type_signature.config import HIDDEN

costs = Replication("draw", "cost_seeds")
trainings = Replication("training", "training_seeds")


@exact
def trials_over_bound(rows: Rows) -> float:
    """Return how close the expected number of trials for a digit of a random prime comes to its bound n ln 10.

    A trial completes the prefix by random digits, and succeeds if the result is prime. The largest ratio to the bound
    over numbers n of digits and positions is returned.
    """
    return float((rows["trials"].trials / rows["trials"].digits / math.log(10)).max())


@exact
def factored(rows: Rows, digits: int) -> float:
    """Return the number of semiprimes that a generator of tuples [pq, p, q] factors.

    Args:
        rows: Measured rows of a run, by kind.
        digits: Number of digits of the factors.
    """
    return float(rows["reduction"].set_index("digits").factored[digits])


@exact
def unfactored(rows: Rows) -> float:
    """Return the number of semiprimes of all sizes that a generator of tuples [pq, p, q] fails to factor."""
    return float((rows["reduction"].semiprimes - rows["reduction"].factored).sum())


@exact
def hidden_factorings(rows: Rows) -> float:
    """Return the number of factorings that generation needs with a hidden stream or a random seed.

    A hidden stream writes p and q before the visible tuple [pq, p, q].
    """
    return float(rows.where("law", stream=HIDDEN).factorings.sum() + rows["seed"].factorings.sum())


@exact
def largest(rows: Rows, /, kind: str, column: str = "variation", **values: object) -> float:
    """Return the largest value of a column over selected rows.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows, for example "law", which compares generators with uniform tuples.
        column: Name of the column. The default "variation" is a total variation distance.
        **values: Values of other columns that select the rows.
    """
    return float(rows.where(kind, **values)[column].max())


@exact
def largest_excess(rows: Rows, kind: str, column: str) -> float:
    """Return the largest difference between a value and its upper bound. The bound holds if it is not positive.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows, for example "seed".
        column: Column of the value. The bound is in the column "bound".
    """
    return float((rows[kind][column] - rows[kind].bound).max())


@exact
def largest_gap(rows: Rows, kind: str, first: str, second: str) -> float:
    """Return the largest absolute difference between two columns over the rows of a kind.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows.
        first: Name of the first column.
        second: Name of the second column.
    """
    return float((rows[kind][first] - rows[kind][second]).abs().max())


@exact
def density_error(rows: Rows, counted: int) -> float:
    """Return the total variation between primes that are sampled by the density of primes and uniform primes.

    The largest measured number of digits is used.

    Args:
        rows: Measured rows of a run, by kind.
        counted: Number of last digits that are sampled by exact counts.
    """
    of_largest = rows.where("density", digits=rows["density"].digits.max(), counted=counted)
    return float(of_largest.sort_values("length").variation.iloc[-1])


@exact
def largest_fall(rows: Rows, least: int) -> float:
    """Return how slowly the share of tuples that trial division factors falls with the number n of digits.

    The number of divisions is limited to n^k. The largest ratio of the shares at n + 1 and n digits is returned, over k
    and n. Only limits that factor some tuples of n + 1 digits, but not all, are compared.

    Args:
        rows: Measured rows of a run, by kind.
        least: Smallest n.
    """
    shares = rows["support"].query(f"digits >= {least}").pivot_table("share", "digits", "exponent")
    return float((shares / shares.shift())[(shares > 0) & (shares < 1)].max().max())


@costs
def cost(rows: Rows, routine: str, digits: int) -> "Series[float]":
    """Return the mean number of operations for the first digit of the second number of a tuple.

    Args:
        rows: Measured rows of a run, by kind.
        routine: "trial division" or "Pollard's rho" for factoring a product, or "primality tests" for a random prime.
        digits: Number of digits of the primes.

    Returns:
        One mean per seed.
    """
    return rows.where("cost", routine=routine, digits=digits).set_index("seed").cost


@costs
def growth(rows: Rows, routine: str) -> "Series[float]":
    """Return how fast the number of operations for the second number of a tuple grows with the digits of the primes.

    Args:
        rows: Measured rows of a run, by kind.
        routine: "trial division" or "Pollard's rho" for factoring a product, or "primality tests" for a random prime.

    Returns:
        One least-squares slope of log10(operations) per digit and seed.
    """
    table = rows.where("cost", routine=routine).pivot_table("cost", "seed", "digits")
    slopes = [float(np.polyfit(table.columns, np.log10(row), 1)[0]) for row in table.to_numpy()]
    return Series(slopes, table.index)


@costs
def growth_factor(rows: Rows, routine: str) -> "Series[float]":
    """Return the factor by which the operations for the second number of a tuple grow per digit of the primes.

    Args:
        rows: Measured rows of a run, by kind.
        routine: "trial division" or "Pollard's rho" for factoring a product, or "primality tests" for a random prime.

    Returns:
        One factor per seed.
    """
    return 10 ** growth(routine)(rows)


@trainings
def learned(rows: Rows, column: str, stream: str, digits: int) -> "Series[float]":
    """Return a measured value of networks that are trained to generate tuples.

    Args:
        rows: Measured rows of a run, by kind.
        column: "valid" (share of generated tuples that are valid), "overlap" (with the uniform distribution over
            tuples) or "excess" (KL divergence in nats).
        stream: Order of the numbers: "product first", "factors first" or "product first, hidden p and q".
        digits: Number of digits of the primes.

    Returns:
        One value per training seed.
    """
    return rows.where("network", stream=stream, digits=digits).set_index("seed")[column]


@trainings
def least_valid(rows: Rows, digits: int) -> "Series[float]":
    """Return the share of generated tuples that are valid, for the order of numbers with the smallest share.

    Args:
        rows: Measured rows of a run, by kind.
        digits: Number of digits of the primes.

    Returns:
        One minimum per training seed.
    """
    return rows.where("network", digits=digits).groupby("seed").valid.min()
