"""Quantities of the study: one number per repetition of the figures, and the exact limits."""

from typing import Any

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact

LARGE = 1000
"""Training sets of at least so many samples are held against the limit of many samples."""

draws = Replication("draw", "seeds")


def of_setting(rows: Rows, coupling: float, masks: str = "one", pairs: str = "unordered") -> DataFrame:
    """The exact numbers of one coupling and reading of the masks and pairs, by number of masked sites."""
    return rows.where("exact", coupling=coupling, masks=masks, pairs=pairs).set_index("block_size")


def of_fits(rows: Rows, column: str, coupling: float, masks: str = "one", least: int = LARGE) -> DataFrame:
    """A measured column, by (seed, n) and number of masked sites, for training sets of at least `least` samples."""
    table = rows.where("fit", coupling=coupling, masks=masks)
    by_size = table[table.n >= least].pivot(index=["seed", "n"], columns="block_size", values=column)
    return by_size.astype(float)


def scaled_errors(rows: Rows, coupling: float, masks: str = "one", least: int = LARGE) -> DataFrame:
    """n times the squared error, likewise; an infinite error stays infinite."""
    errors = of_fits(rows, "squared_error", coupling, masks, least)
    return errors.mul(errors.index.get_level_values("n"), axis=0)


def per_repetition(by_size: "Series[Any]") -> "Series[float]":
    """Mean over the sizes of the training set."""
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
    """Tr Gamma when `size` sites are masked, or another exact number."""
    return float(of_setting(rows, coupling, masks, pairs)[column].loc[size])


@draws
def scaled_error(rows: Rows, coupling: float, size: int) -> "Series[float]":
    """n times the squared error, mean over n >= `LARGE`."""
    return per_repetition(scaled_errors(rows, coupling)[size])


@draws
def error_at(
    rows: Rows, coupling: float, size: int, n: int, masks: str = "one", column: str = "squared_error"
) -> "Series[float]":
    """n times the squared error at one size of the training set, or n times another column."""
    return n * of_fits(rows, column, coupling, masks, least=0)[size].xs(n, level="n")


@draws
def gain(rows: Rows, coupling: float, fewer: int) -> "Series[float]":
    """How much n times the error falls when one more than `fewer` sites are masked, mean over n >= `LARGE`."""
    errors = scaled_errors(rows, coupling)
    return per_repetition(errors[fewer] - errors[fewer + 1])


@draws
def smallest_gain(rows: Rows, coupling: float) -> "Series[float]":
    """How much it falls from masking one site to four, at the size of the training set where it falls least.

    The mean of minima is at most the minimum of the means: the gain is there at every size if this is positive.
    """
    errors = scaled_errors(rows, coupling, least=0)
    return (errors[1] - errors[4]).groupby("seed").min()


@draws
def error_over_limit(rows: Rows, coupling: float, size: int) -> "Series[float]":
    """n times the error over Tr Gamma, mean over n >= `LARGE`."""
    trace = of_setting(rows, coupling).trace.loc[size]
    return per_repetition(scaled_errors(rows, coupling)[size] / trace)


@draws
def gain_of_all_masks(rows: Rows, coupling: float) -> "Series[float]":
    """How much it falls from one masked site to four when all masks are scored, as a share of Tr Gamma."""
    errors = scaled_errors(rows, coupling, "all")
    return per_repetition(errors[1] - errors[4]) / of_setting(rows, coupling).trace.loc[4]


@draws
def within_trace(rows: Rows, coupling: float) -> "Series[float]":
    """Share of the training sets whose error is at most Tr Gamma / n, mean over k and n >= `LARGE`."""
    shares = of_fits(rows, "within_trace", coupling).groupby("seed").mean()
    return shares.melt(ignore_index=False).groupby("seed")["value"].mean()


def _by_model(rows: Rows, column: str, pairs: str = "unordered") -> DataFrame:
    """An exact number of the estimator with one mask a sample, by coupling and number of masked sites."""
    table = rows.where("exact", masks="one", pairs=pairs)
    return table.pivot(index="coupling", columns="block_size", values=column)


@exact
def last_gain_of_couplings(rows: Rows) -> float:
    """By how much masking the last site lowers the trace of the couplings, the largest over models."""
    traces = _by_model(rows, "trace_couplings")
    return float((traces.iloc[:, -2] - traces.iloc[:, -1]).max())


@exact
def slack_of_poincare(rows: Rows) -> float:
    """Smallest C Tr I^-1 - Tr Gamma over models and k, relative to the bound."""
    traces = _by_model(rows, "trace")
    bound = _by_model(rows, "poincare").mul(traces.iloc[:, -1], axis=0)
    return float(((bound - traces) / bound).to_numpy().min())


@exact
def largest_step_of_limit(rows: Rows, pairs: str) -> float:
    """Log ratio of Tr Gamma at k + 1 and k masked sites, the largest over k and couplings."""
    return float(np.nanmax(_by_model(rows, "trace", pairs).apply(np.log).diff(axis=1).to_numpy()))
