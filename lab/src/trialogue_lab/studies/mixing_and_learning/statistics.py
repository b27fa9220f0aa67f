"""Statistics of the study about masking in pseudolikelihood estimation of random models.

Pseudolikelihood estimation predicts a set K of masked variables from all others. A mask distribution chooses K. Gamma
is the asymptotic covariance of the estimated parameters, I the Fisher information, and C the Poincaré constant (inverse
spectral gap) of the Gibbs sampler that resamples K. The bound is Gamma <= C I^-1. Statistics have one number per set of
models, or the worst case over all models.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, size_label

sets = Replication("prompt set", "seeds")

EVERY, MASKED, FEW, MANY = "every law", "every k", "k < N - 2", "k >= N - 2"


def mask_distributions(rows: Rows, which: str = EVERY) -> list[str]:
    """Return the names of a group of mask distributions, in the order of measurement.

    A mask distribution chooses the set of variables that pseudolikelihood estimation predicts from all others.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        which: Name of the group. "every law" selects all distributions, and "every k" selects those that mask k
            uniformly random variables. "k > 1", "k < N - 2" and "k >= N - 2" restrict k, where N is the number of
            variables. Any other name is returned as the only element.
    """
    names = rows["bound"].law.unique().tolist()
    sizes = [name for name in names if name not in (WEIGHTED, ADAPTIVE)]
    groups = {EVERY: names, MASKED: sizes, "k > 1": sizes[1:], FEW: sizes[:-3], MANY: sizes[-3:]}
    return groups.get(which, [which])


def bounds(rows: Rows, which: str = EVERY, coupling: float | None = None) -> DataFrame:
    """Select the measurements of the bound C I^-1 on the covariance of pseudolikelihood estimation.

    The estimator predicts masked variables from all others. I is the Fisher information, and C is the Poincaré constant
    (inverse spectral gap) of the Gibbs sampler that resamples the masked variables.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        which: Name of a mask distribution, or of a group such as "every law" (all) or "every k" (k uniformly random
            variables).
        coupling: Standard deviation of the couplings of the random Ising models. None for all except zero.

    Returns:
        One row per set of models, standard deviation of the couplings, and mask distribution.
    """
    table = rows["bound"]
    table = table[table.coupling > 0] if coupling is None else table[table.coupling == coupling]
    return table[table.law.isin(mask_distributions(rows, which))]


@sets
def typical(rows: Rows, column: str, which: str, coupling: float | None = None) -> "Series[float]":
    """Return the mean of a measured value of pseudolikelihood estimation over random Ising models.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        column: Name of the value, for example "tightness", the smallest valid constant in the covariance bound divided
            by the published constant. If the name starts with "log_", the mean of the logarithms is exponentiated.
        which: Name of a mask distribution, which chooses the predicted variables, or of a group such as "every law"
            (all) or "every k" (k uniformly random variables).
        coupling: Standard deviation of the couplings. None for all except zero.

    Returns:
        One mean per set of models.
    """
    means = bounds(rows, which, coupling).groupby("seed")[column].mean()
    return np.exp(means) if column.startswith("log_") else means


@sets
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return how much a logarithmic value grows from the weakest to the strongest couplings.

    The value concerns pseudolikelihood estimation of random Ising models, in which one spin is predicted from all
    others.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        column: Name of a column of logarithms, for example "log_trace" for the trace of the estimator's covariance.

    Returns:
        One difference of logarithms per set of models, strongest minus weakest couplings.

    Raises:
        NoRows: If only one standard deviation of the couplings was measured.
    """
    table = bounds(rows, size_label(1)).pivot(index="seed", columns="coupling", values=column)
    if len(table.columns) < 2:
        raise NoRows("growth needs couplings with two standard deviations")
    return table.iloc[:, -1] - table.iloc[:, 0]


@exact
def least(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """Return the minimum of a measured value of pseudolikelihood estimation over all random Ising models.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        column: Name of the value, for example "slack", the smallest eigenvalue of the bound minus the covariance.
        which: Name of a mask distribution, which chooses the predicted variables, or of a group such as "every law"
            (all) or "every k" (k uniformly random variables).
        coupling: Standard deviation of the couplings. None for all except zero.

    Returns:
        The minimum over models and mask distributions.
    """
    return float(bounds(rows, which, coupling)[column].min())


@exact
def most(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """Return the maximum of a measured value of pseudolikelihood estimation over all random Ising models.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.
        column: Name of the value, for example "tightness_most", the smallest valid constant in the covariance bound
            divided by the published constant.
        which: Name of a mask distribution, which chooses the predicted variables, or of a group such as "every law"
            (all) or "every k" (k uniformly random variables).
        coupling: Standard deviation of the couplings. None for all except zero.

    Returns:
        The maximum over models and mask distributions.
    """
    return float(bounds(rows, which, coupling)[column].max())


@exact
def best_gain(rows: Rows) -> float:
    """Return the smallest improvement of pseudolikelihood estimation from masking one more spin.

    Estimation predicts k masked spins of an Ising model from all others. The improvement is the smallest eigenvalue of
    the decrease of the estimator's covariance from k to k + 1, divided by the trace of the covariance for k.

    Args:
        rows: Measurements of a run, with one DataFrame per kind.

    Returns:
        The minimum over k of the maximum over models with couplings.
    """
    coupled = rows.where("more", family="Ising").query("coupling != 0")
    return float(coupled.groupby("masked").smallest_most.max().min())
