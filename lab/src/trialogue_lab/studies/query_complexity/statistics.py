"""Quantities of the study: exact numbers, and what searchers, walks and lattices gave by seed."""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.ledger.claims.statistics import Counts

searches = Replication("draw", "search_seeds")
walks = Replication("draw", "walk_seeds")
lattices = Replication("draw", "lattice_seeds")


@exact
def growth(rows: Rows, /, kind: str, column: str, **values: object) -> float:
    """Binary digits that a column grows by per token, between the two greatest lengths."""
    table = rows.where(kind, **values).sort_values("length").iloc[-2:]
    (before, after), (short, long) = np.log2(table[column]), table.length
    return float((after - before) / (long - short))


@exact
def power(rows: Rows, kind: str, column: str) -> float:
    """The power of the length that a column grows like, between the two greatest lengths."""
    table = rows[kind].sort_values("length").iloc[-2:]
    grown, longer = (float(np.ptp(np.log(table[each]))) for each in (column, "length"))
    return grown / longer


@exact
def least_growth(rows: Rows, kind: str, column: str) -> float:
    """Binary digits that a column grows by per token, the least between successive lengths."""
    table = rows[kind].sort_values("length")
    return float((np.log2(table[column]).diff() / table.length.diff()).min())


@exact
def largest_error(rows: Rows, kind: str, column: str, printed: str) -> float:
    """Largest relative distance of a column from what is printed."""
    return float((rows[kind][column] / rows[kind][printed] - 1).abs().max())


@exact
def capped_error(rows: Rows) -> float:
    """Largest relative distance of the chance of an output from 2^-(D-1), over caps."""
    capped = rows["capped"]
    return float((capped.success * 2.0 ** (capped.length - 1) - 1).abs().max())


@exact
def wrong(rows: Rows, kind: str, column: str) -> float:
    """How many answers are wrong."""
    return float(rows[kind][column].sum())


@exact
def unsolved(rows: Rows, task: str) -> float:
    """Largest share of the tasks of a kind that a perfect verifier's calls do not solve."""
    return float(1 - rows.where("verifier", task=task).solved.min())


@exact
def calls_beyond(rows: Rows, /, kind: str, **values: object) -> float:
    """Calls of a verifier beyond |Sigma| D, the most."""
    table = rows.where(kind, **values)
    return float((table.calls - table.bound).max())


@exact
def at_length(rows: Rows, kind: str, column: str, length: int) -> float:
    """A column where strings have so many tokens."""
    return float(rows.where(kind, length=length)[column].iloc[0])


@searches
def searched(rows: Rows, length: int, inferred: bool) -> "Series[float]":
    """Mean queries of the searcher in random order."""
    return rows.where("search", length=length, inferred=inferred).set_index("seed").queries


@searches
def searched_over(rows: Rows, column: str, inferred: bool) -> "Series[float]":
    """Mean queries of the searcher over a column of the optima, mean over lengths."""
    optima = rows["optimum"].set_index("length")[column]
    found = rows.where("search", inferred=inferred)
    return (found.queries / found.length.map(optima)).groupby(found.seed).mean()


@walks
def walked(rows: Rows, walk: str, length: int) -> "Series[float]":
    """Mean queries of a walk that generates the string of zeros."""
    return rows.where("walk", walk=walk, length=length).set_index("seed").queries


@walks
def walked_over_printed(rows: Rows, walk: str) -> "Series[float]":
    """Mean queries of a walk over what is printed, mean over lengths."""
    found = rows.where("walk", walk=walk)
    return (found.queries / found.printed).groupby(found.seed).mean()


@lattices
def solved(rows: Rows, digits: int) -> Counts:
    """Share of the knapsacks with weights of so many binary digits that lattices solve."""
    found = rows.where("lattice", digits=digits).set_index("seed")
    return Counts(found.solved, found.trials, identical=True)
