"""Statistics of the study: one number per seed of the data sets, and extremes over models."""

import math

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact

draws = Replication("draw", "seeds")


@draws
def within(rows: Rows, bound: str) -> Counts:
    """Return the share of data sets that satisfy a bound, for the sizes with the smallest share."""
    shares = rows["bound"].groupby("seed")[f"{bound}_within"].min()
    return counts_from_shares(shares, rows.config["data_sets"], identical=True)


@draws
def of_sizes(rows: Rows, column: str, sizes: str) -> "Series[float]":
    """Return the mean of a column over the data sets of one size."""
    return rows.where("bound", sizes=sizes).set_index("seed")[column]


@draws
def least_looseness(rows: Rows, bound: str) -> "Series[float]":
    """Return the smallest log ratio, over sizes, of a bound to the bounded quantity, averaged over data sets."""
    return rows["bound"].groupby("seed")[f"log_looseness_{bound}"].min()


@exact
def decades_of_masks(rows: Rows) -> float:
    """Return the decimal logarithm of the smallest number of masks per sample over sizes."""
    return min(math.log10(sizes["masks"]) for sizes in rows.config["sizes"])
