"""Statistics of the study about masking in pseudolikelihood estimation of random models.

A mask distribution chooses the set K of masked sites. Gamma is the asymptotic covariance of the estimator with this
mask distribution, I the Fisher information, and C the Poincaré constant of the Gibbs sampler that resamples K. The
bound is Gamma <= C I^-1. Statistics have one number per set of models, or the worst case over all models.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, size_label

sets = Replication("prompt set", "seeds")

EVERY, MASKED, FEW, MANY = "every law", "every k", "k < N - 2", "k >= N - 2"


def mask_distributions(rows: Rows, which: str = EVERY) -> list[str]:
    """Return the names of a group of mask distributions, in the order of measurement.

    Args:
        rows: Measured rows of a run, by kind.
        which: Name of the group: "every law" for all, "every k" for k uniformly random sites, or a range of k, for
            example "k > 1". Other names are returned unchanged.
    """
    names = rows["bound"].law.unique().tolist()
    sizes = [name for name in names if name not in (WEIGHTED, ADAPTIVE)]
    groups = {EVERY: names, MASKED: sizes, "k > 1": sizes[1:], FEW: sizes[:-3], MANY: sizes[-3:]}
    return groups.get(which, [which])


def bounds(rows: Rows, which: str = EVERY, coupling: float | None = None) -> DataFrame:
    """Return the measurements of the bound Gamma <= C I^-1.

    Args:
        rows: Measured rows of a run, by kind.
        which: Name of a mask distribution or of a group (see `mask_distributions`).
        coupling: Standard deviation of the models' couplings. None for all except zero.

    Returns:
        One row per set of models, standard deviation of the couplings, and mask distribution.
    """
    table = rows["bound"]
    table = table[table.coupling > 0] if coupling is None else table[table.coupling == coupling]
    return table[table.law.isin(mask_distributions(rows, which))]


@sets
def typical(rows: Rows, column: str, which: str, coupling: float | None = None) -> "Series[float]":
    """Return the mean of a measured value over models.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "tightness". The mean of a column of logarithms, whose name starts with
            "log_", is exponentiated to a geometric mean.
        which: Name of a mask distribution or of a group (see `mask_distributions`).
        coupling: Standard deviation of the models' couplings. None for all except zero.

    Returns:
        One mean per set of models.
    """
    means = bounds(rows, which, coupling).groupby("seed")[column].mean()
    return np.exp(means) if column.startswith("log_") else means


@sets
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return the increase of a value from the weakest to the strongest couplings, if one site is masked.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of a column of logarithms, for example "log_constant".

    Returns:
        One increase per set of models.

    Raises:
        NoRows: If only one standard deviation of the couplings was measured.
    """
    table = bounds(rows, size_label(1)).pivot(index="seed", columns="coupling", values=column)
    if len(table.columns) < 2:
        raise NoRows("growth needs couplings with two standard deviations")
    return table.iloc[:, -1] - table.iloc[:, 0]


@exact
def least(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """Return the minimum of a measured value over all models.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "slack".
        which: Name of a mask distribution or of a group (see `mask_distributions`).
        coupling: Standard deviation of the models' couplings. None for all except zero.
    """
    return float(bounds(rows, which, coupling)[column].min())


@exact
def most(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """Return the maximum of a measured value over all models.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the value, for example "tightness_most".
        which: Name of a mask distribution or of a group (see `mask_distributions`).
        coupling: Standard deviation of the models' couplings. None for all except zero.
    """
    return float(bounds(rows, which, coupling)[column].max())


@exact
def best_gain(rows: Rows) -> float:
    """Return the gain from one more masked site in the worst direction, for the best model and the worst k.

    The gain is the smallest eigenvalue of Gamma^k - Gamma^{k+1}, where Gamma^k is the asymptotic covariance with k
    masked sites, divided by Tr Gamma^k. The models are Ising models with couplings.
    """
    coupled = rows.where("more", family="Ising").query("coupling != 0")
    return float(coupled.groupby("masked").smallest_most.max().min())
