"""Quantities of the study: one number per seed of the data sets, and extremes over models."""

import math

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows, exact, shares_of

draws = Replication("draw", "seeds")


@draws
def within(rows: Rows, bound: str) -> Counts:
    """Share of data sets that keep a bound, at the sizes where it is smallest."""
    shares = rows["bound"].groupby("seed")[f"{bound}_within"].min()
    return shares_of(shares, rows.config["data_sets"], identical=True)


@draws
def of_sizes(rows: Rows, column: str, sizes: str) -> "Series[float]":
    """A mean over the data sets of one size."""
    return rows.where("bound", sizes=sizes).set_index("seed")[column]


@draws
def least_looseness(rows: Rows, bound: str) -> "Series[float]":
    """Log ratio of a bound and what it bounds, mean over data sets, the least over sizes."""
    return rows["bound"].groupby("seed")[f"log_looseness_{bound}"].min()


@exact
def decades_of_masks(rows: Rows) -> float:
    """Decimal logarithm of the number of masks of every sample, the least over sizes."""
    return min(math.log10(sizes["masks"]) for sizes in rows.config["sizes"])
