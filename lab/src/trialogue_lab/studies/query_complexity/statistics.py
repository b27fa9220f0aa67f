"""Statistics of the study: exact numbers, and means over searches, samplers and lattices by seed."""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows, exact

searches = Replication("draw", "search_seeds")
walks = Replication("draw", "walk_seeds")
lattices = Replication("draw", "lattice_seeds")


@exact
def growth(rows: Rows, /, kind: str, column: str, **values: object) -> float:
    """Return the growth of log2 of a column per token, between the two largest lengths."""
    table = rows.where(kind, **values).sort_values("length").iloc[-2:]
    (before, after), (short, long) = np.log2(table[column]), table.length
    return float((after - before) / (long - short))


@exact
def power(rows: Rows, kind: str, column: str) -> float:
    """Return the exponent with which a column grows with the length, between the two largest lengths."""
    table = rows[kind].sort_values("length").iloc[-2:]
    grown, longer = (float(np.ptp(np.log(table[each]))) for each in (column, "length"))
    return grown / longer


@exact
def least_growth(rows: Rows, kind: str, column: str) -> float:
    """Return the smallest growth of log2 of a column per token, over pairs of successive lengths."""
    table = rows[kind].sort_values("length")
    return float((np.log2(table[column]).diff() / table.length.diff()).min())


@exact
def largest_error(rows: Rows, kind: str, column: str, printed: str) -> float:
    """Return the largest relative error of a column, compared with the printed column."""
    return float((rows[kind][column] / rows[kind][printed] - 1).abs().max())


@exact
def capped_error(rows: Rows) -> float:
    """Return the largest relative error of the success probability, compared with 2^-(D-1), over caps."""
    capped = rows["capped"]
    return float((capped.success * 2.0 ** (capped.length - 1) - 1).abs().max())


@exact
def wrong(rows: Rows, kind: str, column: str) -> float:
    """Return the number of wrong results."""
    return float(rows[kind][column].sum())


@exact
def unsolved(rows: Rows, task: str) -> float:
    """Return the largest share of tasks that the calls of a perfect verifier do not solve."""
    return float(1 - rows.where("verifier", task=task).solved.min())


@exact
def calls_beyond(rows: Rows, /, kind: str, **values: object) -> float:
    """Return the largest number of verifier calls above |Sigma| D."""
    table = rows.where(kind, **values)
    return float((table.calls - table.bound).max())


@exact
def at_length(rows: Rows, kind: str, column: str, length: int) -> float:
    """Return a column at one string length."""
    return float(rows.where(kind, length=length)[column].iloc[0])


@searches
def searched(rows: Rows, length: int, inferred: bool) -> "Series[float]":
    """Return the mean queries of the searcher in random order, by seed."""
    return rows.where("search", length=length, inferred=inferred).set_index("seed").queries


@searches
def searched_over(rows: Rows, column: str, inferred: bool) -> "Series[float]":
    """Return the mean queries of the searcher relative to a column of the optima, averaged over lengths."""
    optima = rows["optimum"].set_index("length")[column]
    found = rows.where("search", inferred=inferred)
    return (found.queries / found.length.map(optima)).groupby(found.seed).mean()


@walks
def walked(rows: Rows, walk: str, length: int) -> "Series[float]":
    """Return the mean queries of a sampler that generates the string of zeros, by seed."""
    return rows.where("walk", walk=walk, length=length).set_index("seed").queries


@walks
def walked_over_printed(rows: Rows, walk: str) -> "Series[float]":
    """Return the mean queries of a sampler relative to the printed cost, averaged over lengths."""
    found = rows.where("walk", walk=walk)
    return (found.queries / found.printed).groupby(found.seed).mean()


@lattices
def solved(rows: Rows, digits: int) -> Counts:
    """Return the share of knapsacks with this number of binary digits that lattice reduction solves."""
    found = rows.where("lattice", digits=digits).set_index("seed")
    return Counts(found.solved, found.trials, identical=True)
