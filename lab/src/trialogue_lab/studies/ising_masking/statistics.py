"""Statistics of the study about the number of masked sites when Ising models are fitted by pseudolikelihood.

An estimator masks k sites of each of n samples and fits the model's parameters to the conditional distribution of the
masked sites. Gamma is its asymptotic covariance: the squared error, summed over parameters, is about Tr Gamma / n.
"""

from typing import Any

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact

LARGE = 1000
"""Smallest size of training sets that are compared with the limit"""

draws = Replication("draw", "seeds")


def exact_rows(rows: Rows, coupling: float, masks: str = "one", pairs: str = "unordered") -> DataFrame:
    """Return exact properties of the estimators of one model, with one row per number of masked sites.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.
        masks: "one" for an estimator with one random mask per sample, or "all" with all masks of a size.
        pairs: "unordered" if the energy counts each pair of spins once, or "ordered" if it counts each pair twice.
    """
    return rows.where("exact", coupling=coupling, masks=masks, pairs=pairs).set_index("block_size")


def fit_column(
    rows: Rows, column: str, coupling: float, masks: str = "one", min_samples: int = LARGE
) -> DataFrame:
    """Return a column of the measurements of fitted models as a table.

    Args:
        rows: Measured rows of a run, by kind.
        column: Name of the column, for example "squared_error".
        coupling: Coupling J between the spins of the model.
        masks: "one" for one random mask per sample, or "all" for all masks of a size.
        min_samples: Smallest number of samples n. Smaller training sets are omitted.

    Returns:
        One row per seed and n, and one column per number of masked sites.
    """
    table = rows.where("fit", coupling=coupling, masks=masks)
    by_size = table[table.n >= min_samples].pivot(index=["seed", "n"], columns="block_size", values=column)
    return by_size.astype(float)


def scaled_errors(rows: Rows, coupling: float, masks: str = "one", min_samples: int = LARGE) -> DataFrame:
    """Return the squared error of fitted models, summed over parameters and multiplied by the number of samples n.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.
        masks: "one" for one random mask per sample, or "all" for all masks of a size.
        min_samples: Smallest number of samples n. Smaller training sets are omitted.

    Returns:
        One row per seed and n, and one column per number of masked sites.
    """
    errors = fit_column(rows, "squared_error", coupling, masks, min_samples)
    return errors.mul(errors.index.get_level_values("n"), axis=0)


def per_repetition(by_size: "Series[Any]") -> "Series[float]":
    """Average numbers that are indexed by seed and size of the training set over the sizes.

    Returns:
        One mean per seed.
    """
    return by_size.groupby("seed").mean()


@exact
def limit(
    rows: Rows,
    coupling: float,
    size: int,
    masks: str = "one",
    column: str = "trace",
    pairs: str = "unordered",
) -> float:
    """Return the exact asymptotic error Tr Gamma of an estimator, where Gamma is its asymptotic covariance.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.
        size: Number of masked sites.
        masks: "one" for one random mask per sample, or "all" for all masks of a size.
        column: "trace" (default), or "trace_couplings" or "trace_fields" for a part of the parameters.
        pairs: "unordered" if the energy counts each pair of spins once, or "ordered" if it counts each pair twice.
    """
    return float(exact_rows(rows, coupling, masks, pairs)[column].loc[size])


@draws
def scaled_error(rows: Rows, coupling: float, size: int) -> "Series[float]":
    """Return the squared error of fitted models, multiplied by the number of samples n.

    It is averaged over training sets with at least 1,000 samples.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.
        size: Number of masked sites.

    Returns:
        One mean per seed.
    """
    return per_repetition(scaled_errors(rows, coupling)[size])


@draws
def error_at(
    rows: Rows, coupling: float, size: int, n: int, masks: str = "one", column: str = "squared_error"
) -> "Series[float]":
    """Return the squared error of models fitted to training sets of one size, multiplied by this size.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.
        size: Number of masked sites.
        n: Number of samples in a training set.
        masks: "one" for one random mask per sample, or "all" for all masks of a size.
        column: "squared_error" (default), or "squared_error_couplings" for the couplings alone.

    Returns:
        One number per seed, averaged over its training sets.
    """
    return n * fit_column(rows, column, coupling, masks, min_samples=0)[size].xs(n, level="n")


@draws
def gain(rows: Rows, coupling: float, fewer: int) -> "Series[float]":
    """Return how much the squared error decreases if one more site is masked.

    The error is multiplied by the number of samples n and averaged over training sets with at least 1,000 samples.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.
        fewer: Number of masked sites that is compared with `fewer` + 1.

    Returns:
        One decrease per seed.
    """
    errors = scaled_errors(rows, coupling)
    return per_repetition(errors[fewer] - errors[fewer + 1])


@draws
def smallest_gain(rows: Rows, coupling: float) -> "Series[float]":
    """Return the smallest decrease of the squared error from one masked site to four, over sizes n of the training set.

    The error is multiplied by n. If the mean over seeds is positive, the expected error decreases at every n, because
    the mean of minima is at most the minimum of means.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.

    Returns:
        One minimum per seed.
    """
    errors = scaled_errors(rows, coupling, min_samples=0)
    return (errors[1] - errors[4]).groupby("seed").min()


@draws
def error_over_limit(rows: Rows, coupling: float, size: int) -> "Series[float]":
    """Return the ratio of the measured squared error to its asymptotic value Tr Gamma / n.

    It is averaged over training sets with n >= 1,000 samples.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.
        size: Number of masked sites.

    Returns:
        One ratio per seed.
    """
    trace = exact_rows(rows, coupling).trace.loc[size]
    return per_repetition(scaled_errors(rows, coupling)[size] / trace)


@draws
def gain_of_all_masks(rows: Rows, coupling: float) -> "Series[float]":
    """Return the decrease of the squared error from one masked site to four, if all masks of a size are used.

    It is divided by the asymptotic error Tr Gamma / n with four masked sites, and averaged over training sets with n >=
    1,000 samples.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.

    Returns:
        One relative decrease per seed.
    """
    errors = scaled_errors(rows, coupling, "all")
    return per_repetition(errors[1] - errors[4]) / exact_rows(rows, coupling).trace.loc[4]


@draws
def within_trace(rows: Rows, coupling: float) -> "Series[float]":
    """Return the share of training sets whose squared error is at most its asymptotic value Tr Gamma / n.

    It is averaged over numbers of masked sites and over training sets with n >= 1,000 samples.

    Args:
        rows: Measured rows of a run, by kind.
        coupling: Coupling J between the spins of the model.

    Returns:
        One share per seed.
    """
    return per_repetition(fit_column(rows, "within_trace", coupling).mean(axis=1))


def _by_model(rows: Rows, column: str, pairs: str = "unordered") -> DataFrame:
    """Return an exact column of the estimator with one mask per sample, by coupling and number of masked sites."""
    table = rows.where("exact", masks="one", pairs=pairs)
    return table.pivot(index="coupling", columns="block_size", values=column)


@exact
def last_gain_of_couplings(rows: Rows) -> float:
    """Return the largest decrease, over models, of the asymptotic error of the couplings from N - 1 to N masked sites.

    N is the number of sites, so that the last estimator masks all of them.
    """
    traces = _by_model(rows, "trace_couplings")
    return float((traces.iloc[:, -2] - traces.iloc[:, -1]).max())


@exact
def slack_of_poincare(rows: Rows) -> float:
    """Return how far Tr Gamma stays below its bound C Tr I^-1, relative to the bound.

    Gamma is the asymptotic covariance with k masked sites, C the Poincaré constant of the Markov chain that resamples k
    sites, and I the Fisher information. The minimum over models and k is returned.
    """
    traces = _by_model(rows, "trace")
    bound = _by_model(rows, "poincare").mul(traces.iloc[:, -1], axis=0)
    return float(((bound - traces) / bound).to_numpy().min())


@exact
def largest_step_of_limit(rows: Rows, pairs: str) -> float:
    """Return the largest increase of the logarithm of the asymptotic error Tr Gamma when one more site is masked.

    The maximum is over models and numbers of masked sites. It is negative if every additional masked site helps.

    Args:
        rows: Measured rows of a run, by kind.
        pairs: "unordered" if the energy counts each pair of spins once, or "ordered" if it counts each pair twice.
    """
    return float(np.nanmax(_by_model(rows, "trace", pairs).apply(np.log).diff(axis=1).to_numpy()))
