"""Quantities of the study: one number per repetition of the figure, and the exact ones."""

import math
from collections.abc import Sequence

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.ising_sampling.config import block_label

draws = Replication("draw", "seeds")


def chains(rows: Rows) -> list[str]:
    """The chains in the order of their block sizes, independent parallel last."""
    return rows["exact"].chain.unique().tolist()


def blocks(rows: Rows, least: int = 1, below_all: int = 0) -> list[str]:
    """The k-Gibbs chains with k from `least` to N - `below_all`, where N is the largest k; raises `NoRows` for none."""
    sizes = sorted(rows["exact"].block_size.dropna().astype(int).unique().tolist())
    found = [block_label(size) for size in sizes if least <= size <= sizes[-1] - below_all]
    if not found:
        raise NoRows(f"no block size from {least} to {sizes[-1] - below_all}")
    return found


def expected(rows: Rows, column: str) -> DataFrame:
    """An exact number, by coupling (increasing) and chain."""
    return rows["exact"].pivot(index="coupling", columns="chain", values=column)[chains(rows)]


def simulated(rows: Rows, column: str, of: Sequence[str], most: float = math.inf) -> DataFrame:
    """A simulated number of some chains, by coupling (at most `most`) and seed, and chain."""
    table = rows["simulated"]
    table = table[table.coupling <= most]
    return table.pivot(index=["coupling", "seed"], columns="chain", values=column)[list(of)]


@draws
def steps(rows: Rows, coupling: float, chain: str, column: str = "mean") -> "Series[float]":
    """Steps to the larger mode, at most the budget counted, mean over chains; or another simulated number."""
    return simulated(rows, column, [chain])[chain].xs(coupling, level="coupling")


@draws
def log_steps_ratio(rows: Rows, first: str, second: str, most: float = math.inf) -> "Series[float]":
    """Log ratio of the mean steps of two chains, mean over couplings up to `most`."""
    logs = np.log(simulated(rows, "mean", [first, second], most))
    return (logs[first] - logs[second]).groupby("seed").mean()


@draws
def slowdown(rows: Rows, first: float, second: float, below_all: int = 0) -> "Series[float]":
    """Log ratio of the mean steps at two couplings, mean over k up to N - `below_all`."""
    logs = np.log(simulated(rows, "mean", blocks(rows, below_all=below_all))).mean(axis=1).unstack("coupling")
    return logs[first] - logs[second]


@draws
def steps_over_exact(rows: Rows, least: int) -> "Series[float]":
    """Mean steps over the exact ones, mean over k from `least` on and couplings."""
    ours, truth = _beside_exact(rows, "mean", blocks(rows, least))
    return (ours / truth).mean(axis=1).groupby("seed").mean()


@draws
def arrivals_above_exact(rows: Rows) -> "Series[float]":
    """Share of chains that arrive minus the exact probability, mean over all chains and couplings."""
    ours, truth = _beside_exact(rows, "reached", chains(rows))
    return (ours - truth).mean(axis=1).groupby("seed").mean()


def _beside_exact(rows: Rows, column: str, of: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Simulated numbers, and the exact ones in the same shape."""
    ours = simulated(rows, column, of)
    truth = expected(rows, column)[ours.columns]
    return ours, truth.loc[ours.index.get_level_values("coupling")].set_axis(ours.index)


@exact
def exact_number(rows: Rows, coupling: float, chain: str, column: str = "mean") -> float:
    """An exact number of one chain: steps with at most the budget counted, or another."""
    return float(expected(rows, column)[chain].loc[coupling])


@exact
def expected_steps(rows: Rows, coupling: float, chain: str) -> float:
    """Expected steps to the larger mode without a budget."""
    return math.exp(expected(rows, "log_expected")[chain].loc[coupling])


@exact
def largest_increase_with_blocks(rows: Rows) -> float:
    """By how much the logarithm of the expected steps grows from one k to the next, the largest over k and J."""
    increases = expected(rows, "log_expected")[blocks(rows)].diff(axis=1)
    return float(increases.melt()["value"].max())


@exact
def smallest_increase_with_coupling(rows: Rows) -> float:
    """By how much it grows from one J to the next, the smallest over J and k."""
    increases = expected(rows, "log_expected")[blocks(rows)].diff()
    return float(increases.melt()["value"].min())


@exact
def smallest_slowdown(rows: Rows, first: float, second: float) -> float:
    """By how much it is larger at the first J than at the second, the smallest over k below N."""
    logs = expected(rows, "log_expected")[blocks(rows, below_all=1)].T
    return float((logs[first] - logs[second]).min())


def in_both_readings(rows: Rows) -> list[float]:
    """The couplings J whose double was measured too: the model of 2 J is that of J with its pairs read as ordered."""
    couplings = rows["setting"].coupling.tolist()
    return sorted(coupling for coupling in couplings if 2 * coupling in couplings)


@exact
def reached_by_reading(rows: Rows, chain: str, least: float, times: int) -> float:
    """P(reaching the larger mode within the budget), the largest over J from `least` on that both readings have.

    `times` is how often a pair is counted: 1 where pairs are unordered, 2 where they are ordered.
    """
    chosen = [times * coupling for coupling in in_both_readings(rows) if coupling >= least]
    if not chosen:
        raise NoRows(f"no J from {least:g} on was measured with its double")
    return float(expected(rows, "reached")[chain].loc[chosen].max())
