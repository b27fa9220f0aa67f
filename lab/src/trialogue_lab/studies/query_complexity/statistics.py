"""Statistics of the study about the number of queries that constrained generation needs.

A query is a call of the model. In the task "hidden string" of Theorem 3.1.1, only one valid string of length D has
positive probability under the model.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows, exact

searches = Replication("draw", "search_seeds")
walks = Replication("draw", "walk_seeds")
lattices = Replication("draw", "lattice_seeds")


@exact
def growth(rows: Rows, /, kind: str, column: str, **values: object) -> float:
    """Return the exponential growth rate of a cost with the string length, between the two largest lengths.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows, for example "hidden".
        column: Name of the cost.
        **values: Values of other columns that select the rows.

    Returns:
        The increase of log2 of the cost per token.
    """
    table = rows.where(kind, **values).sort_values("length").iloc[-2:]
    (before, after), (short, long) = np.log2(table[column]), table.length
    return float((after - before) / (long - short))


@exact
def power(rows: Rows, kind: str, column: str) -> float:
    """Return the exponent of a power law of a cost in the string length, between the two largest lengths.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows, for example "dyck".
        column: Name of the cost.
    """
    table = rows[kind].sort_values("length").iloc[-2:]
    grown, longer = (float(np.ptp(np.log(table[each]))) for each in (column, "length"))
    return grown / longer


@exact
def least_growth(rows: Rows, kind: str, column: str) -> float:
    """Return the smallest exponential growth rate of a cost with the string length, over successive lengths.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows, for example "dyck".
        column: Name of the cost.

    Returns:
        The smallest increase of log2 of the cost per token.
    """
    table = rows[kind].sort_values("length")
    return float((np.log2(table[column]).diff() / table.length.diff()).min())


@exact
def largest_error(rows: Rows, kind: str, column: str, printed: str) -> float:
    """Return the largest relative difference, over string lengths, between a computed value and its published formula.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows, for example "zeros".
        column: Column of the computed value.
        printed: Column of the published value.
    """
    return float((rows[kind][column] / rows[kind][printed] - 1).abs().max())


@exact
def capped_error(rows: Rows) -> float:
    """Return the largest relative error of the formula 2^-(D-1) for the success probability of tokenwise rejection.

    Tokenwise rejection gives up after a maximum number of rejections at one position. The error is the largest over
    string lengths D and these maxima.
    """
    capped = rows["capped"]
    return float((capped.success * 2.0 ** (capped.length - 1) - 1).abs().max())


@exact
def wrong(rows: Rows, kind: str, column: str) -> float:
    """Return the number of knapsacks for which a solver is wrong.

    Args:
        rows: Measured rows of a run, by kind.
        kind: "knapsack" for random knapsacks, or "greedy" for superincreasing ones.
        column: Column of the solver, for example "generated_wrong".
    """
    return float(rows[kind][column].sum())


@exact
def unsolved(rows: Rows, task: str) -> float:
    """Return the share of models that cannot generate a string found by the verifier alone.

    The largest share over string lengths is returned.

    Args:
        rows: Measured rows of a run, by kind.
        task: "Dyck strings" or "hidden string".
    """
    return float(1 - rows.where("verifier", task=task).solved.min())


@exact
def calls_beyond(rows: Rows, /, kind: str, **values: object) -> float:
    """Return by how much the number of verifier calls exceeds the bound |Sigma| D at most.

    |Sigma| is the number of tokens and D the string length. The bound holds if the result is not positive.

    Args:
        rows: Measured rows of a run, by kind.
        kind: "verifier" for strings, or "knapsack" for random knapsacks.
        **values: Values of other columns that select the rows.
    """
    table = rows.where(kind, **values)
    return float((table.calls - table.bound).max())


@exact
def at_length(rows: Rows, kind: str, column: str, length: int) -> float:
    """Return a computed value at one string length.

    Args:
        rows: Measured rows of a run, by kind.
        kind: Kind of the rows, for example "optimum".
        column: Name of the value.
        length: String length.
    """
    return float(rows.where(kind, length=length)[column].iloc[0])


@searches
def searched(rows: Rows, length: int, inferred: bool) -> "Series[float]":
    """Return the number of queries that a searcher needs to find the hidden string.

    The searcher tries candidates in random order.

    Args:
        rows: Measured rows of a run, by kind.
        length: String length.
        inferred: Whether the last candidate is inferred without a query.

    Returns:
        One mean over hidden strings per seed.
    """
    return rows.where("search", length=length, inferred=inferred).set_index("seed").queries


@searches
def searched_over(rows: Rows, column: str, inferred: bool) -> "Series[float]":
    """Return the ratio of the queries of a searcher with random order to the optimal number of queries.

    Args:
        rows: Measured rows of a run, by kind.
        column: Column of the optimum: "inferred" or "queried", depending on whether the last candidate needs a query.
        inferred: Whether the searcher infers the last candidate without a query.

    Returns:
        One mean over string lengths per seed.
    """
    optima = rows["optimum"].set_index("length")[column]
    found = rows.where("search", inferred=inferred)
    return (found.queries / found.length.map(optima)).groupby(found.seed).mean()


@walks
def walked(rows: Rows, walk: str, length: int) -> "Series[float]":
    """Return the number of queries that a sampler needs to generate the string of zeros (Proposition 3.1.1).

    Args:
        rows: Measured rows of a run, by kind.
        walk: Name of the sampler, "rejection" or "tokenwise rejection".
        length: String length.

    Returns:
        One mean over outputs per seed.
    """
    return rows.where("walk", walk=walk, length=length).set_index("seed").queries


@walks
def walked_over_printed(rows: Rows, walk: str) -> "Series[float]":
    """Return the ratio of the queries of a sampler to the published number for the string of zeros.

    The published number is in Proposition 3.1.1.

    Args:
        rows: Measured rows of a run, by kind.
        walk: Name of the sampler, "rejection" or "tokenwise rejection".

    Returns:
        One mean over string lengths per seed.
    """
    found = rows.where("walk", walk=walk)
    return (found.queries / found.printed).groupby(found.seed).mean()


@lattices
def solved(rows: Rows, digits: int) -> Counts:
    """Count the solvable random knapsacks that lattice reduction solves.

    Args:
        rows: Measured rows of a run, by kind.
        digits: Number of binary digits of the weights.

    Returns:
        Solved knapsacks and all knapsacks, per seed.
    """
    found = rows.where("lattice", digits=digits).set_index("seed")
    return Counts(found.solved, found.trials, identical=True)
