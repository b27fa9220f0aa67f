"""Statistics of the study: one number per repetition of the figure, and exact numbers."""

import math
from collections.abc import Sequence

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.ising_sampling.config import block_label

draws = Replication("draw", "seeds")


def chains(rows: Rows) -> list[str]:
    """Return the names of the chains by block size, with independent parallel last."""
    return rows["exact"].chain.unique().tolist()


def blocks(rows: Rows, smallest: int = 1, below_all: int = 0) -> list[str]:
    """Return the names of the k-Gibbs chains for k from `smallest` to N - `below_all`, where N is the largest k.

    Raises `NoRows` if there are none.
    """
    sizes = sorted(rows["exact"].block_size.dropna().astype(int).unique().tolist())
    names = [block_label(size) for size in sizes if smallest <= size <= sizes[-1] - below_all]
    if not names:
        raise NoRows(f"no block size from {smallest} to {sizes[-1] - below_all}")
    return names


def expected(rows: Rows, column: str) -> DataFrame:
    """Return an exact column by coupling (rows, increasing) and chain (columns)."""
    return rows["exact"].pivot(index="coupling", columns="chain", values=column)[chains(rows)]


def simulated(rows: Rows, column: str, names: Sequence[str], most: float = math.inf) -> DataFrame:
    """Return a simulated column of chains, by coupling (at most `most`) and seed (rows) and chain (columns)."""
    table = rows["simulated"]
    table = table[table.coupling <= most]
    return table.pivot(index=["coupling", "seed"], columns="chain", values=column)[list(names)]


@draws
def steps(rows: Rows, coupling: float, chain: str, column: str = "mean") -> "Series[float]":
    """Return the mean over chains of min(T, budget), or another simulated column."""
    return simulated(rows, column, [chain])[chain].xs(coupling, level="coupling")


@draws
def log_steps_ratio(rows: Rows, first: str, second: str, most: float = math.inf) -> "Series[float]":
    """Return the log ratio of the mean steps of two samplers, as a mean over couplings up to `most`."""
    logs = np.log(simulated(rows, "mean", [first, second], most))
    return (logs[first] - logs[second]).groupby("seed").mean()


@draws
def slowdown(rows: Rows, first: float, second: float, below_all: int = 0) -> "Series[float]":
    """Return the log ratio of the mean steps at two couplings, as a mean over k up to N - `below_all`."""
    logs = np.log(simulated(rows, "mean", blocks(rows, below_all=below_all))).mean(axis=1).unstack("coupling")
    return logs[first] - logs[second]


@draws
def steps_over_exact(rows: Rows, least: int) -> "Series[float]":
    """Return the ratio of simulated to exact mean steps, as a mean over couplings and k from `least`."""
    simulated_means, exact_means = _simulated_and_exact(rows, "mean", blocks(rows, least))
    return (simulated_means / exact_means).mean(axis=1).groupby("seed").mean()


@draws
def arrivals_above_exact(rows: Rows) -> "Series[float]":
    """Return the share of chains that arrive minus the exact probability, as a mean over samplers and couplings."""
    shares, probabilities = _simulated_and_exact(rows, "reached", chains(rows))
    return (shares - probabilities).mean(axis=1).groupby("seed").mean()


def _simulated_and_exact(rows: Rows, column: str, names: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Return simulated numbers, and the exact numbers in the same shape."""
    measured = simulated(rows, column, names)
    truth = expected(rows, column)[measured.columns]
    return measured, truth.loc[measured.index.get_level_values("coupling")].set_axis(measured.index)


@exact
def exact_number(rows: Rows, coupling: float, chain: str, column: str = "mean") -> float:
    """Return the exact mean of min(T, budget) of a sampler, or another exact column."""
    return float(expected(rows, column)[chain].loc[coupling])


@exact
def largest_increase_with_blocks(rows: Rows) -> float:
    """Return the largest increase of the log expected steps from one k to the next, over k and J."""
    increases = expected(rows, "log_expected")[blocks(rows)].diff(axis=1)
    return float(increases.melt()["value"].max())


@exact
def smallest_increase_with_coupling(rows: Rows) -> float:
    """Return the smallest increase of the log expected steps from one J to the next, over J and k."""
    increases = expected(rows, "log_expected")[blocks(rows)].diff()
    return float(increases.melt()["value"].min())


@exact
def smallest_slowdown(rows: Rows, first: float, second: float) -> float:
    """Return the smallest difference of the log expected steps between two couplings, over k below N."""
    logs = expected(rows, "log_expected")[blocks(rows, below_all=1)].T
    return float((logs[first] - logs[second]).min())


@exact
def reached_by_reading(rows: Rows, chain: str, least: float, times: int) -> float:
    """Return the largest probability of reaching the larger mode within the budget, in one interpretation of pairs.

    Args:
        rows: The rows of a result.
        chain: Name of the sampler.
        least: Smallest coupling J.
        times: Number of times that the energy counts a pair: 1 for unordered pairs, 2 for ordered pairs.

    Raises:
        NoRows: If no coupling from `least` was measured together with its double. A model with the coupling 2 J is the
            model with the coupling J in which every pair is counted twice.
    """
    couplings = rows.distinct("setting", "coupling")
    chosen = [times * each for each in couplings if each >= least and 2 * each in couplings]
    if not chosen:
        raise NoRows(f"no J from {least:g} was measured together with its double")
    return float(expected(rows, "reached")[chain].loc[chosen].max())
