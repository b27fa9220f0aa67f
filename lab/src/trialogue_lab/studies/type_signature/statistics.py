"""Statistics of the study about generating tuples [pq, p, q] of a semiprime and its factors.

A semiprime is the product pq of two primes, which have n digits here. Writing the product before the factors requires
the model to factor it. A stream is an order of the three numbers, possibly after hidden tokens with p and q.
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
    """Return the largest ratio (expected number of trials for finding a random prime / its upper bound).

    A trial completes the first digits of a number of n digits at random. It succeeds if the result is prime. The upper
    bound on the expected number of trials is n ln 10.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The maximum over n and over the number of given digits. The bound holds if it is at most 1.
    """
    return float((rows["trials"].trials / rows["trials"].digits / math.log(10)).max())


@exact
def factored(rows: Rows, digits: int) -> float:
    """Return the number of semiprimes that are factored by a generator of tuples [pq, p, q].

    A tuple contains a semiprime pq and its prime factors p and q. The generator is forced to begin with a given
    semiprime, and then writes the factors.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        digits: Number of digits of each factor.
    """
    return float(rows["reduction"].set_index("digits").factored[digits])


@exact
def unfactored(rows: Rows) -> float:
    """Return the number of semiprimes, of any size, that a generator of tuples [pq, p, q] fails to factor.

    A tuple contains a semiprime pq and its prime factors p and q. The generator is forced to begin with a given
    semiprime, and should then write the factors.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return float((rows["reduction"].semiprimes - rows["reduction"].factored).sum())


@exact
def hidden_factorings(rows: Rows) -> float:
    """Return how often two work-arounds must factor a number to generate tuples [pq, p, q].

    A tuple contains a semiprime and its prime factors p and q. The first work-around writes p and q as hidden tokens
    before the tuple. The second one computes p and q from a random seed.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The sum over all sizes and both work-arounds.
    """
    return float(rows.where("law", stream=HIDDEN).factorings.sum() + rows["seed"].factorings.sum())


@exact
def largest(rows: Rows, /, kind: str, column: str = "variation", **values: object) -> float:
    """Return the maximum of one measurement over all rows of one kind.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows, for example "law" for the output distributions of generators of tuples [pq, p, q].
        column: Name of the column. The default "variation" is the total variation distance from the target
            distribution.
        **values: Values of other columns that select the rows.
    """
    return float(rows.where(kind, **values)[column].max())


@exact
def largest_excess(rows: Rows, kind: str, column: str) -> float:
    """Return the largest difference (measurement - upper bound) over all rows of one kind.

    The bound holds if the result is not positive.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows, for example "seed" for generators that compute a tuple of primes from a random seed.
        column: Column of the value. The bound is in the column "bound".
    """
    return float((rows[kind][column] - rows[kind].bound).max())


@exact
def largest_gap(rows: Rows, kind: str, first: str, second: str) -> float:
    """Return the largest absolute difference between two columns over all rows of one kind.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        kind: Kind of the rows.
        first: Name of the first column.
        second: Name of the second column.
    """
    return float((rows[kind][first] - rows[kind][second]).abs().max())


@exact
def density_error(rows: Rows, counted: int) -> float:
    """Return the error of sampling random primes partly by their approximate density.

    Digits are sampled one by one: the first ones by the approximate density of primes, and the last ones by exact
    counts. The error is the total variation distance from a uniformly random prime. The largest measured number of
    digits is used.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        counted: Number of last digits that are sampled by exact counts.
    """
    of_largest = rows.where("density", digits=rows["density"].digits.max(), counted=counted)
    return float(of_largest.sort_values("length").variation.iloc[-1])


@exact
def largest_fall(rows: Rows, least: int) -> float:
    """Return how slowly the share of numbers that trial division can factor falls with the number of digits.

        ratio = (share with n + 1 digits) / (share with n digits)

    The numbers are products of two primes of n digits, called semiprimes. At most n^k divisions are allowed.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        least: Smallest n.

    Returns:
        The maximum over n and k. Pairs are omitted if the share for n + 1 digits is 0 or 1.
    """
    shares = rows["support"].query(f"digits >= {least}").pivot_table("share", "digits", "exponent")
    return float((shares / shares.shift())[(shares > 0) & (shares < 1)].max().max())


@costs
def cost(rows: Rows, routine: str, digits: int) -> "Series[float]":
    """Return the mean number of operations that are needed to write the second number of a tuple.

    The tuple contains two primes and their product. If the product comes first, it must be factored. Otherwise, the
    second number is a random prime. Only the operations for its first digit are counted.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        routine: "trial division" or "Pollard's rho" for factoring a product, or "primality tests" for sampling a random
            prime.
        digits: Number of digits of the primes.

    Returns:
        One mean per seed.
    """
    return rows.where("cost", routine=routine, digits=digits).set_index("seed").cost


@costs
def growth(rows: Rows, routine: str) -> "Series[float]":
    """Return how fast the cost of writing the second number of a tuple grows with the number of digits.

    The tuple contains two primes and their product. If the product comes first, it must be factored. Otherwise, the
    second number is a random prime. The result is the slope of log10(operations) over the number of digits.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        routine: "trial division" or "Pollard's rho" for factoring a product, or "primality tests" for
            sampling a random prime.

    Returns:
        One slope per seed. A slope of 1 means ten times as many operations per additional digit.
    """
    table = rows.where("cost", routine=routine).pivot_table("cost", "seed", "digits")
    slopes = [float(np.polyfit(table.columns, np.log10(row), 1)[0]) for row in table.to_numpy()]
    return Series(slopes, table.index)


@costs
def growth_factor(rows: Rows, routine: str) -> "Series[float]":
    """Return the factor by which one more digit increases the cost of writing the second number of a tuple.

    The tuple contains two primes and their product. If the product comes first, it must be factored. Otherwise, the
    second number is a random prime. The factor is 10^slope, for the slope that `growth` returns.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        routine: "trial division" or "Pollard's rho" for factoring a product, or "primality tests" for sampling a random
            prime.

    Returns:
        One factor per seed.
    """
    return 10 ** growth(routine)(rows)


@trainings
def learned(rows: Rows, column: str, stream: str, digits: int) -> "Series[float]":
    """Return a measurement of networks that are trained to generate tuples of two primes and their product.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column: "valid" (share of generated tuples that are valid), "overlap" (1 minus the total
            variation distance from the uniform distribution over tuples) or "excess" (KL divergence in nats).
        stream: Order of the numbers: "product first", "factors first" or "product first, hidden p and q" (p and q are
            also written before the visible tuple).
        digits: Number of digits of the primes.

    Returns:
        One value per training seed.
    """
    return rows.where("network", stream=stream, digits=digits).set_index("seed")[column]


@trainings
def least_valid(rows: Rows, digits: int) -> "Series[float]":
    """Return the smallest share of valid tuples that networks generate, over several orders of the numbers.

    A tuple contains a semiprime pq and its factors p and q. It is valid if p and q are primes and pq is their product.
    One network is trained for each order.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        digits: Number of digits of the primes.

    Returns:
        One minimum per training seed.
    """
    return rows.where("network", digits=digits).groupby("seed").valid.min()
