"""Statistics of the study: one number per repetition of the figures, and exact limits."""

from typing import Any

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact

LARGE = 1000
"""Smallest size of training sets that are compared with the limit"""

draws = Replication("draw", "seeds")


def exact_rows(rows: Rows, coupling: float, masks: str = "one", pairs: str = "unordered") -> DataFrame:
    """Return the exact rows of a coupling, with one or all masks per sample and pairs counted once or twice, by k."""
    return rows.where("exact", coupling=coupling, masks=masks, pairs=pairs).set_index("block_size")


def fit_column(
    rows: Rows, column: str, coupling: float, masks: str = "one", min_samples: int = LARGE
) -> DataFrame:
    """Return a column by seed and n (rows) and number of masked sites (columns), for n >= `min_samples`."""
    table = rows.where("fit", coupling=coupling, masks=masks)
    by_size = table[table.n >= min_samples].pivot(index=["seed", "n"], columns="block_size", values=column)
    return by_size.astype(float)


def scaled_errors(rows: Rows, coupling: float, masks: str = "one", min_samples: int = LARGE) -> DataFrame:
    """Return n times the squared error by seed and n (rows) and number of masked sites (columns)."""
    errors = fit_column(rows, "squared_error", coupling, masks, min_samples)
    return errors.mul(errors.index.get_level_values("n"), axis=0)


def per_repetition(by_size: "Series[Any]") -> "Series[float]":
    """Return the mean over the sizes of the training set, by seed."""
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
    """Return Tr Gamma for `size` masked sites, or another exact column."""
    return float(exact_rows(rows, coupling, masks, pairs)[column].loc[size])


@draws
def scaled_error(rows: Rows, coupling: float, size: int) -> "Series[float]":
    """Return n times the squared error, as a mean over n >= `LARGE`."""
    return per_repetition(scaled_errors(rows, coupling)[size])


@draws
def error_at(
    rows: Rows, coupling: float, size: int, n: int, masks: str = "one", column: str = "squared_error"
) -> "Series[float]":
    """Return n times the squared error at one size of the training set, or n times another column."""
    return n * fit_column(rows, column, coupling, masks, min_samples=0)[size].xs(n, level="n")


@draws
def gain(rows: Rows, coupling: float, fewer: int) -> "Series[float]":
    """Return the decrease of n times the error from `fewer` masked sites to one more, as a mean over n >= `LARGE`."""
    errors = scaled_errors(rows, coupling)
    return per_repetition(errors[fewer] - errors[fewer + 1])


@draws
def smallest_gain(rows: Rows, coupling: float) -> "Series[float]":
    """Return the decrease of n times the error from one masked site to four, as a minimum over n.

    The mean of minima is at most the minimum of the means. If it is positive, there is a gain at every size.
    """
    errors = scaled_errors(rows, coupling, min_samples=0)
    return (errors[1] - errors[4]).groupby("seed").min()


@draws
def error_over_limit(rows: Rows, coupling: float, size: int) -> "Series[float]":
    """Return n times the error divided by Tr Gamma, as a mean over n >= `LARGE`."""
    trace = exact_rows(rows, coupling).trace.loc[size]
    return per_repetition(scaled_errors(rows, coupling)[size] / trace)


@draws
def gain_of_all_masks(rows: Rows, coupling: float) -> "Series[float]":
    """Return the decrease of n times the error from one masked site to four if all masks are scored, over Tr Gamma."""
    errors = scaled_errors(rows, coupling, "all")
    return per_repetition(errors[1] - errors[4]) / exact_rows(rows, coupling).trace.loc[4]


@draws
def within_trace(rows: Rows, coupling: float) -> "Series[float]":
    """Return the share of training sets with an error of at most Tr Gamma / n, as a mean over k and n >= `LARGE`."""
    return per_repetition(fit_column(rows, "within_trace", coupling).mean(axis=1))


def _by_model(rows: Rows, column: str, pairs: str = "unordered") -> DataFrame:
    """Return an exact column of the estimator with one mask per sample, by coupling and number of masked sites."""
    table = rows.where("exact", masks="one", pairs=pairs)
    return table.pivot(index="coupling", columns="block_size", values=column)


@exact
def last_gain_of_couplings(rows: Rows) -> float:
    """Return the decrease of the trace over couplings when the last site is masked too, as a maximum over models."""
    traces = _by_model(rows, "trace_couplings")
    return float((traces.iloc[:, -2] - traces.iloc[:, -1]).max())


@exact
def slack_of_poincare(rows: Rows) -> float:
    """Return the smallest relative slack of the bound C Tr I^-1 of Tr Gamma, over models and k."""
    traces = _by_model(rows, "trace")
    bound = _by_model(rows, "poincare").mul(traces.iloc[:, -1], axis=0)
    return float(((bound - traces) / bound).to_numpy().min())


@exact
def largest_step_of_limit(rows: Rows, pairs: str) -> float:
    """Return the largest log ratio of Tr Gamma at k + 1 and k masked sites, over k and couplings."""
    return float(np.nanmax(_by_model(rows, "trace", pairs).apply(np.log).diff(axis=1).to_numpy()))
