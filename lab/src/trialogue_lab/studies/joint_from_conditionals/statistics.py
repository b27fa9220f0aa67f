"""Statistics of the study about learning a joint distribution from its conditional distributions.

A data set consists of samples of an Ising model and random masks of spins. A model is fitted by predicting masked spins
from the others. Bounds are on its distance from the true distribution.
"""

import math

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact

draws = Replication("draw", "seeds")


@draws
def within(rows: Rows, bound: str) -> Counts:
    """Count the data sets for which a measured error is at most its theoretical bound.

    A data set consists of samples of an Ising model and random masks of spins. A model is fitted by predicting masked
    spins from the others, and the bound limits its error. A run has data sets of several sizes. For each seed, the
    count uses only the size for which the bound holds least often.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        bound: Name of the bound.
            - "stated": Theorem 4.1.4 as stated.
            - "proved": the form of this theorem that its proof shows.
            - "average": Corollary 4.3.1.
            - "lemma": Lemma 4.3.5.
            - "empirical": Lemma 4.3.6.

    Returns:
        Number of data sets that satisfy the bound and number of all data sets of this size, per seed.
    """
    shares = rows["bound"].groupby("seed")[f"{bound}_within"].min()
    return counts_from_shares(shares, rows.config["data_sets"], identical=True)


@draws
def of_sizes(rows: Rows, column: str, sizes: str) -> "Series[float]":
    """Return a measurement of fitted Ising models, averaged over the data sets of one size.

    A data set consists of samples of an Ising model and random masks of its spins. A model is fitted to it by
    predicting masked spins from the others.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "stated_bound" for the bound of Theorem 4.1.4. "variation" is the total
            variation distance between the fitted and the true distribution.
        sizes: Numbers of spins N, of samples n and of masks per sample m, for example "N = 2, n = 100000, m = 1e+10".

    Returns:
        One mean per seed.
    """
    return rows.where("bound", sizes=sizes).set_index("seed")[column]


@draws
def least_looseness(rows: Rows, bound: str) -> "Series[float]":
    """Return the smallest log ratio between an upper bound on the error of a fitted model and its measured error.

        log(upper bound / measured error)

    An Ising model is fitted to each data set by predicting masked spins from the others, and a theorem gives the bound.
    Log ratios are averaged over data sets of the same size before the minimum is taken.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        bound: "stated" for Theorem 4.1.4 as stated, "proved" for the form that its proof shows, "average" for Corollary
            4.3.1, or "empirical" for Lemma 4.3.6.

    Returns:
        One minimum per seed.
    """
    return rows["bound"].groupby("seed")[f"log_looseness_{bound}"].min()


@exact
def decades_of_masks(rows: Rows) -> float:
    """Return the smallest number of random masks per sample in the data sets of the run, as log10.

    A mask is a set of spins that are predicted from the others to fit an Ising model.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return min(math.log10(sizes["masks"]) for sizes in rows.config["sizes"])
