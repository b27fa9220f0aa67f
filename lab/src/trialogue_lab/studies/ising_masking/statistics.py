"""Statistics of the study about fitting Ising models by predicting masked spins.

An estimator masks k spins of each of n samples, and fits the model's parameters to the conditional distribution of the
masked spins given the others. Its squared error, summed over parameters, is about Tr Gamma / n for many samples. Gamma
is the asymptotic covariance of the estimated parameters.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact

LARGE = 1000
"""Smallest size of training sets that are compared with the limit"""

draws = Replication("draw", "seeds")


def select_exact_rows(rows: Rows, coupling: float, masks: str = "one", pairs: str = "unordered") -> DataFrame:
    """Select the exactly computed errors of fitted Ising models, for one true model.

    The model is fitted by masking k spins of each sample and predicting them from the others.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the model.
        masks: "one" for one random mask per sample, or "all" for all masks of k spins.
        pairs: "unordered" if the energy counts each pair of spins once, or "ordered" if it counts each pair
            twice.

    Returns:
        One row per number k of masked spins.
    """
    return rows.where("exact", coupling=coupling, masks=masks, pairs=pairs).set_index("block_size")


def select_fit_column(
    rows: Rows, column: str, coupling: float, masks: str = "one", min_samples: int = LARGE
) -> DataFrame:
    """Arrange one measurement of fitted Ising models as a table by number of masked spins.

    Each model is fitted to n samples. The fit masks k spins per sample and predicts them from the others.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "squared_error".
        coupling: Coupling J between the spins of the true model.
        masks: "one" for one random mask per sample, or "all" for all masks of k spins.
        min_samples: Smallest number of samples n. Smaller training sets are omitted.

    Returns:
        One row per seed and n, and one column per number k of masked spins.
    """
    table = rows.where("fit", coupling=coupling, masks=masks)
    by_size = table[table.n >= min_samples].pivot(index=["seed", "n"], columns="block_size", values=column)
    return by_size.astype(float)


def compute_scaled_errors(
    rows: Rows, coupling: float, masks: str = "one", min_samples: int = LARGE
) -> DataFrame:
    """Return the squared errors of fitted Ising models, multiplied by the number n of samples.

    The squared error is summed over all parameters. The models are fitted by masking k spins of each sample and
    predicting them from the others.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the true model.
        masks: "one" for one random mask per sample, or "all" for all masks of k spins.
        min_samples: Smallest number of samples n. Smaller training sets are omitted.

    Returns:
        One row per seed and n, and one column per number k of masked spins.
    """
    errors = select_fit_column(rows, "squared_error", coupling, masks, min_samples)
    return errors.mul(errors.index.get_level_values("n"), axis=0)


@exact
def limit(
    rows: Rows,
    coupling: float,
    size: int,
    masks: str = "one",
    column: str = "trace",
    pairs: str = "unordered",
) -> float:
    """Return the asymptotic error of the fitted parameters: the limit of n times the squared error.

    An Ising model is fitted to n samples. The fit masks some spins of each sample and predicts them from the others. As
    n grows, n times the squared error tends to Tr Gamma, where Gamma is the asymptotic covariance of the parameters.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the model.
        size: Number of masked spins.
        masks: "one" for one random mask per sample, or "all" for all masks of `size` spins.
        column: "trace" (default) for the error of all parameters, "trace_couplings" for the couplings, or
            "trace_fields" for the external fields.
        pairs: "unordered" if the energy counts each pair of spins once, or "ordered" if it counts each pair twice.
    """
    return float(select_exact_rows(rows, coupling, masks, pairs)[column].loc[size])


@draws
def scaled_error(rows: Rows, coupling: float, size: int) -> "Series[float]":
    """Return the squared error of fitted Ising models, multiplied by the number n of samples.

    The models are fitted by masking some spins of each sample and predicting them from the others. The squared error is
    summed over all parameters, and n is at least 1,000.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the true model.
        size: Number of masked spins.

    Returns:
        One mean over training sets per seed.
    """
    return compute_scaled_errors(rows, coupling)[size].groupby("seed").mean()


@draws
def error_at(
    rows: Rows, coupling: float, size: int, n: int, masks: str = "one", column: str = "squared_error"
) -> "Series[float]":
    """Return the squared error of fitted Ising models, multiplied by the number n of samples, for one n.

    The models are fitted by masking some spins of each sample and predicting them from the others.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the true model.
        size: Number of masked spins.
        n: Number of samples in a training set.
        masks: "one" for one random mask per sample, or "all" for all masks of `size` spins.
        column: "squared_error" (default) for the sum over all parameters, or "squared_error_couplings" for the
            couplings.

    Returns:
        One mean over training sets per seed.
    """
    return n * select_fit_column(rows, column, coupling, masks, min_samples=0)[size].xs(n, level="n")


@draws
def gain(rows: Rows, coupling: float, fewer: int) -> "Series[float]":
    """Return how much the error of fitted Ising models decreases if one more spin is masked.

    The models are fitted to n >= 1,000 samples by predicting masked spins from the others. The error is n times the
    squared error, summed over all parameters. The result is error(`fewer`) - error(`fewer` + 1), averaged over training
    sets.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the true model.
        fewer: The smaller number of masked spins.

    Returns:
        One difference per seed.
    """
    errors = compute_scaled_errors(rows, coupling)
    return (errors[fewer] - errors[fewer + 1]).groupby("seed").mean()


@draws
def smallest_gain(rows: Rows, coupling: float) -> "Series[float]":
    """Return the smallest decrease of the error of fitted Ising models if four spins are masked instead of one.

    The models are fitted to n samples by predicting masked spins from the others. The error is n times the squared
    error of the parameters. The minimum is over n.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the true model.

    Returns:
        One minimum per seed. If it is positive, masking four spins is better for every n.
    """
    errors = compute_scaled_errors(rows, coupling, min_samples=0)
    return (errors[1] - errors[4]).groupby("seed").min()


@draws
def error_over_limit(rows: Rows, coupling: float, size: int) -> "Series[float]":
    """Return the squared error of fitted Ising models, divided by its asymptotic value Tr Gamma / n.

    The models are fitted to n >= 1,000 samples. The fit masks some spins of each sample and predicts them from the
    others. Gamma is the asymptotic covariance of the fitted parameters.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the true model.
        size: Number of masked spins.

    Returns:
        One mean ratio over training sets per seed.
    """
    trace = select_exact_rows(rows, coupling).trace.loc[size]
    return (compute_scaled_errors(rows, coupling)[size] / trace).groupby("seed").mean()


@draws
def gain_of_all_masks(rows: Rows, coupling: float) -> "Series[float]":
    """Return the relative decrease of the error from one masked spin to four, if every possible mask is used.

        decrease = (error of one - error of four) / (Tr Gamma / n)

    Ising models are fitted to n >= 1,000 samples by predicting masked spins from the others. Gamma is the
    asymptotic covariance of the parameters if a single random mask of four spins is used per sample.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the true model.

    Returns:
        One mean over training sets per seed.
    """
    errors = compute_scaled_errors(rows, coupling, "all")
    return (errors[1] - errors[4]).groupby("seed").mean() / select_exact_rows(rows, coupling).trace.loc[4]


@draws
def within_trace(rows: Rows, coupling: float) -> "Series[float]":
    """Return the share of fitted Ising models whose squared error is at most Tr Gamma / n.

    Each model is fitted to n >= 1,000 samples by predicting masked spins from the others. Gamma is the asymptotic
    covariance of the fitted parameters, so the expected squared error is about Tr Gamma / n.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins of the true model.

    Returns:
        One share per seed, averaged over sizes n of the training set and over numbers of masked spins.
    """
    return select_fit_column(rows, "within_trace", coupling).mean(axis=1).groupby("seed").mean()


def _select_by_model(rows: Rows, column: str, pairs: str = "unordered") -> DataFrame:
    """Return an exact property of estimators by coupling and number of masked spins, for one mask per sample."""
    table = rows.where("exact", masks="one", pairs=pairs)
    return table.pivot(index="coupling", columns="block_size", values=column)


@exact
def last_gain_of_couplings(rows: Rows) -> float:
    """Return the largest decrease of the error of fitted couplings if all N spins are masked instead of N - 1.

        decrease = error(N - 1 masked spins) - error(N masked spins)

    Ising models are fitted by predicting masked spins from the others. The error is the sum of the asymptotic
    variances of the couplings.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The largest decrease over all models.
    """
    traces = _select_by_model(rows, "trace_couplings")
    return float((traces.iloc[:, -2] - traces.iloc[:, -1]).max())


@exact
def slack_of_poincare(rows: Rows) -> float:
    """Return the smallest relative distance of the error of fitted Ising models from its upper bound.

    The models are fitted by predicting k masked spins from the others. The error is Tr Gamma, where Gamma is
    the asymptotic covariance of the parameters. The bound is C Tr I^-1, with the Poincaré constant C of the
    Markov chain that resamples k spins and the Fisher information I.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The minimum of (bound - error) / bound over models and k.
    """
    traces = _select_by_model(rows, "trace")
    bound = _select_by_model(rows, "poincare").mul(traces.iloc[:, -1], axis=0)
    return float(((bound - traces) / bound).to_numpy().min())


@exact
def largest_step_of_limit(rows: Rows, pairs: str) -> float:
    """Return the largest increase of the error of fitted Ising models when one more spin is masked.

    The error is log Tr Gamma, where Gamma is the asymptotic covariance of the fitted parameters. The models are fitted
    by predicting masked spins from the others. A negative result means that every additional masked spin reduces the
    error.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        pairs: "unordered" if the energy counts each pair of spins once, or "ordered" if it counts each pair twice.

    Returns:
        The maximum over models and numbers of masked spins.
    """
    return float(np.nanmax(_select_by_model(rows, "trace", pairs).apply(np.log).diff(axis=1).to_numpy()))
