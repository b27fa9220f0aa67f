"""Statistics of the study about masking in pseudolikelihood estimation of random models.

Pseudolikelihood estimation predicts a set K of masked variables from all others. A mask distribution chooses K. Gamma
is the asymptotic covariance of the estimated parameters, I the Fisher information, and C the Poincaré constant (inverse
spectral gap) of the Gibbs sampler that resamples K. The bound is Gamma <= C I^-1. Statistics have one number per set of
models, or the worst case over all models.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.mixing_and_learning.config import ADAPTIVE, WEIGHTED, make_size_label

sets = Replication("prompt set", "seeds")

EVERY, MASKED, FEW, MANY = "every law", "every k", "k < N - 2", "k >= N - 2"


def list_mask_distributions(rows: Rows, which: str = EVERY) -> list[str]:
    """Return the names of all measured mask distributions that belong to a group.

    Pseudolikelihood estimation predicts masked variables from all others. A mask distribution chooses which ones are
    masked.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        which: Name of the group. "every law" (default) selects all mask distributions. "every k" selects those that
            mask k uniformly random variables. "k > 1", "k < N - 2" and "k >= N - 2" restrict k, where N is the number
            of variables. Any other name is returned as the only element.

    Returns:
        Names in the order of measurement.
    """
    names = rows["bound"].law.unique().tolist()
    sizes = [name for name in names if name not in (WEIGHTED, ADAPTIVE)]
    groups = {EVERY: names, MASKED: sizes, "k > 1": sizes[1:], FEW: sizes[:-3], MANY: sizes[-3:]}
    return groups.get(which, [which])


def select_bounds(rows: Rows, which: str = EVERY, coupling: float | None = None) -> DataFrame:
    """Select the rows that compare the error of parameter estimates with its upper bound.

    The parameters of a model are estimated by predicting masked variables from all others (pseudolikelihood). The error
    is the covariance of the estimates.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        which: Name of a mask distribution, or of a group such as "every law" (all) or "every k" (k uniformly
            random variables).
        coupling: Standard deviation of the couplings of the random Ising models. None for all except zero.

    Returns:
        One row per set of models, standard deviation of the couplings, and mask distribution.
    """
    table = rows["bound"]
    table = table[table.coupling > 0] if coupling is None else table[table.coupling == coupling]
    return table[table.law.isin(list_mask_distributions(rows, which))]


@sets
def typical(rows: Rows, column: str, which: str, coupling: float | None = None) -> "Series[float]":
    """Return a measurement of parameter estimates, averaged over random Ising models.

    Parameters are estimated by predicting masked spins from all others (pseudolikelihood).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column. An example is "tightness", the smallest constant for which the covariance bound
            holds divided by the constant that the theorem gives. For a name that starts with "log_", exp(mean of
            logarithms) is returned.
        which: Name of the distribution that chooses the masked spins, or of a group of such distributions: "every law"
            (all) or "every k" (k uniformly random spins).
        coupling: Standard deviation of the random couplings. None (default) for all except zero.

    Returns:
        One mean per set of models.
    """
    means = select_bounds(rows, which, coupling).groupby("seed")[column].mean()
    return np.exp(means) if column.startswith("log_") else means


@sets
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return how much a measurement of parameter estimates increases from the weakest to the strongest couplings.

    The measurement is a logarithm. Parameters of random Ising models are estimated by predicting one random spin from
    all others (pseudolikelihood).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "log_trace", the logarithm of the trace of the estimator's covariance.

    Returns:
        One difference per set of random models.

    Raises:
        NoRows: If all measured couplings have the same standard deviation.
    """
    table = select_bounds(rows, make_size_label(1)).pivot(index="seed", columns="coupling", values=column)
    if len(table.columns) < 2:
        raise NoRows("growth needs couplings with two standard deviations")
    return table.iloc[:, -1] - table.iloc[:, 0]


@exact
def least(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """Return the minimum of a measurement of parameter estimates over random Ising models.

    Parameters are estimated by predicting masked spins from all others (pseudolikelihood).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "slack", the smallest eigenvalue of (upper bound - covariance).
        which: Name of the distribution that chooses the masked spins, or of a group of such distributions: "every law"
            (all) or "every k" (k uniformly random spins).
        coupling: Standard deviation of the random couplings. None (default) for all except zero.

    Returns:
        The minimum over models and mask distributions.
    """
    return float(select_bounds(rows, which, coupling)[column].min())


@exact
def most(rows: Rows, column: str, which: str, coupling: float | None = None) -> float:
    """Return the maximum of a measurement of parameter estimates over random Ising models.

    Parameters are estimated by predicting masked spins from all others (pseudolikelihood).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column. An example is "tightness_most", the smallest constant for which the covariance bound
            holds divided by the constant that the theorem gives.
        which: Name of the distribution that chooses the masked spins, or of a group of such distributions: "every law"
            (all) or "every k" (k uniformly random spins).
        coupling: Standard deviation of the random couplings. None (default) for all except zero.

    Returns:
        The maximum over models and mask distributions.
    """
    return float(select_bounds(rows, which, coupling)[column].max())


@exact
def best_gain(rows: Rows) -> float:
    """Return the smallest improvement of parameter estimates by masking one more spin, over numbers k of masked spins.

        improvement = lambda_min(Gamma_k - Gamma_{k+1}) / Tr Gamma_k

    An Ising model is fitted by predicting k masked spins from all others. Gamma_k is the asymptotic
    covariance of the fitted parameters, and lambda_min the smallest eigenvalue.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The minimum over k of the maximum improvement over models with nonzero couplings.
    """
    coupled = rows.where("more", family="Ising").query("coupling != 0")
    return float(coupled.groupby("masked").smallest_most.max().min())
