"""Statistics of the study about learning a joint distribution from its conditional distributions.

A data set consists of samples of an Ising model and random masks. The fitted model maximizes the pseudolikelihood, the
probability of masked sites given the others. Bounds are on its distance from the true distribution.
"""

import math

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact

draws = Replication("draw", "seeds")


@draws
def within(rows: Rows, bound: str) -> Counts:
    """Count the data sets that satisfy a bound, for the size of data sets at which the fewest do.

    Args:
        rows: Measured rows of a run, by kind.
        bound: "stated" for Theorem 4.1.4 as stated, "proved" for the form that its proof shows, "average" for Corollary
            4.3.1, "lemma" for Lemma 4.3.5, or "empirical" for Lemma 4.3.6.

    Returns:
        Data sets that satisfy the bound and all data sets, per seed.
    """
    shares = rows["bound"].groupby("seed")[f"{bound}_within"].min()
    return counts_from_shares(shares, rows.config["data_sets"], identical=True)


@draws
def of_sizes(rows: Rows, column: str, sizes: str) -> "Series[float]":
    """Return the mean of a column over the data sets of one size.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the column, for example "stated_bound" or "variation".
        sizes: Label of the size, for example "N = 2, n = 100000, m = 1e+10".

    Returns:
        One mean per seed.
    """
    return rows.where("bound", sizes=sizes).set_index("seed")[column]


@draws
def least_looseness(rows: Rows, bound: str) -> "Series[float]":
    """Return the smallest log ratio, over sizes of data sets, of a bound to the quantity that it bounds.

    Args:
        rows: Measured rows of a run, by kind.
        bound: "stated" for Theorem 4.1.4 as stated, "proved" for the form that its proof shows, "average" for Corollary
            4.3.1, or "empirical" for Lemma 4.3.6.

    Returns:
        One minimum per seed. Log ratios are averaged over data sets of the same size.
    """
    return rows["bound"].groupby("seed")[f"log_looseness_{bound}"].min()


@exact
def decades_of_masks(rows: Rows) -> float:
    """Return the decimal logarithm of the smallest number of masks per sample, over sizes of data sets."""
    return min(math.log10(sizes["masks"]) for sizes in rows.config["sizes"])
