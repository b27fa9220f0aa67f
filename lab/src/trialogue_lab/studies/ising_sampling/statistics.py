"""Statistics of the study about the time that samplers of an Ising model need to reach its larger mode.

The clique is a set of spins that are all coupled with each other. All spins point down at the start, and T is the
number of steps until all spins of the clique point up. k-Gibbs resamples k random spins per step, and the sampler
"independent parallel" resamples all spins independently.
"""

import math
from collections.abc import Sequence

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import NoRows, Replication, Rows, exact
from trialogue_lab.studies.ising_sampling.config import block_label

draws = Replication("draw", "seeds")


def list_chains(rows: Rows) -> list[str]:
    """Return the names of all samplers of the Ising model.

    The k-Gibbs samplers, which resample k random spins per step, come first in ascending order of k. The last name is
    "independent parallel", which resamples all spins independently.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return rows["exact"].chain.unique().tolist()


def list_block_samplers(rows: Rows, smallest: int = 1, below_all: int = 0) -> list[str]:
    """Return the names of the k-Gibbs samplers with k in a range.

    A k-Gibbs sampler resamples k random spins of an Ising model per step.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        smallest: Smallest k (default: 1).
        below_all: Number of largest measured values of k to leave out (default: 0).

    Returns:
        Names in ascending order of k.

    Raises:
        NoRows: If no k is in the range.
    """
    sizes = sorted(rows["exact"].block_size.dropna().astype(int).unique().tolist())
    names = [block_label(size) for size in sizes if smallest <= size <= sizes[-1] - below_all]
    if not names:
        raise NoRows(f"no block size from {smallest} to {sizes[-1] - below_all}")
    return names


def select_exact_column(rows: Rows, column: str) -> DataFrame:
    """Return one exactly computed column of all samplers of the Ising model as a table.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "log_expected", the logarithm of the expected number of steps until all
            coupled spins point up.

    Returns:
        One row per coupling J between the spins, and one column per sampler.
    """
    return rows["exact"].pivot(index="coupling", columns="chain", values=column)[list_chains(rows)]


def select_simulated_column(
    rows: Rows, column: str, names: Sequence[str], most: float = math.inf
) -> DataFrame:
    """Return one column of simulated samplers of the Ising model as a table.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: Name of the column, for example "mean", the mean number of steps until all coupled spins point up.
        names: Names of the samplers.
        most: Largest coupling J between the spins (default: no limit).

    Returns:
        One row per coupling and seed, and one column per sampler.
    """
    table = rows["simulated"]
    table = table[table.coupling <= most]
    return table.pivot(index=["coupling", "seed"], columns="chain", values=column)[list(names)]


@draws
def steps(rows: Rows, coupling: float, chain: str, column: str = "mean") -> "Series[float]":
    """Return the simulated number of steps T that a sampler of an Ising model needs until all coupled spins point up.

    All spins point down at the start. Chains stop after a fixed number of steps, the budget.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins.
        chain: Name of the sampler, for example "k = 2", which resamples two random spins per step.
        column: "mean" (default) or "deviation" (standard deviation) of min(T, budget) over chains, or "reached" for the
            share of chains with T <= budget.

    Returns:
        One number per seed.
    """
    return select_simulated_column(rows, column, [chain])[chain].xs(coupling, level="coupling")


@draws
def log_steps_ratio(rows: Rows, first: str, second: str, most: float = math.inf) -> "Series[float]":
    """Return how many more steps one sampler of an Ising model needs than another, as a natural log ratio.

    A sampler starts with all spins down, and runs until all coupled spins point up. Numbers of steps are averaged over
    simulated chains. The result is log(steps of the first / steps of the second).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        first: Name of the sampler in the numerator.
        second: Name of the sampler in the denominator.
        most: Largest coupling J between the spins (default: no limit).

    Returns:
        One mean log ratio over couplings per seed.
    """
    logs = np.log(select_simulated_column(rows, "mean", [first, second], most))
    return (logs[first] - logs[second]).groupby("seed").mean()


@draws
def slowdown(rows: Rows, first: float, second: float, below_all: int = 0) -> "Series[float]":
    """Return how many more steps a sampler of an Ising model needs at one coupling than at another, as a log ratio.

        log(steps at the first coupling / steps at the second coupling)

    The k-Gibbs sampler resamples k random spins of an Ising model per step. Simulated chains start with all spins down,
    and run until all coupled spins point up.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        first: Coupling J between the spins in the numerator.
        second: Coupling J in the denominator.
        below_all: The largest k is the largest measured k minus `below_all` (default: 0).

    Returns:
        One mean log ratio over all k per seed.
    """
    logs = (
        np.log(select_simulated_column(rows, "mean", list_block_samplers(rows, below_all=below_all)))
        .mean(axis=1)
        .unstack("coupling")
    )
    return logs[first] - logs[second]


@draws
def steps_over_exact(rows: Rows, least: int) -> "Series[float]":
    """Return the simulated mean number of steps of a sampler of an Ising model, divided by its exact value.

    A step of k-Gibbs resamples k random spins. It starts with all spins down, and runs until all coupled spins point
    up.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        least: Smallest k.

    Returns:
        One mean ratio over couplings and k per seed.
    """
    simulated_means, exact_means = _select_simulated_and_exact(rows, "mean", list_block_samplers(rows, least))
    return (simulated_means / exact_means).mean(axis=1).groupby("seed").mean()


@draws
def arrivals_above_exact(rows: Rows) -> "Series[float]":
    """Return the share of successful simulations minus the exact probability of success.

    A simulated sampler of an Ising model starts with all spins down, and stops after a fixed number of steps. It is
    successful if all coupled spins point up before it stops.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One mean difference over samplers and couplings, per seed.
    """
    shares, probabilities = _select_simulated_and_exact(rows, "reached", list_chains(rows))
    return (shares - probabilities).mean(axis=1).groupby("seed").mean()


def _select_simulated_and_exact(rows: Rows, column: str, names: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    measured = select_simulated_column(rows, column, names)
    truth = select_exact_column(rows, column)[measured.columns]
    return measured, truth.loc[measured.index.get_level_values("coupling")].set_axis(measured.index)


@exact
def exact_number(rows: Rows, coupling: float, chain: str, column: str = "mean") -> float:
    """Return an exact property of the number T of steps that a sampler needs until all coupled spins point up.

    The sampler of an Ising model starts with all spins down. The budget is the number of steps after which simulated
    chains stop.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        coupling: Coupling J between the spins.
        chain: Name of the sampler.
        column: "mean" (default) or "deviation" (standard deviation) of min(T, budget), "reached" for the probability
            that T <= budget, or "log_expected" for the logarithm of the expectation of T.
    """
    return float(select_exact_column(rows, column)[chain].loc[coupling])


@exact
def largest_increase_with_blocks(rows: Rows) -> float:
    """Return the largest increase of the time of k-Gibbs, as log(expected steps), from one k to the next larger k.

    k-Gibbs resamples k random spins of an Ising model per step, until all coupled spins point up. A negative result
    means that a larger k is faster at every coupling.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    increases = select_exact_column(rows, "log_expected")[list_block_samplers(rows)].diff(axis=1)
    return float(increases.melt()["value"].max())


@exact
def smallest_increase_with_coupling(rows: Rows) -> float:
    """Return the smallest increase of the time of k-Gibbs, as log(expected steps), from one coupling to the next.

    k-Gibbs resamples k random spins of an Ising model per step, until all coupled spins point up. The minimum is taken
    over couplings and k. A positive result means that stronger couplings always slow the sampler down.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    increases = select_exact_column(rows, "log_expected")[list_block_samplers(rows)].diff()
    return float(increases.melt()["value"].min())


@exact
def smallest_slowdown(rows: Rows, first: float, second: float) -> float:
    """Return the smallest factor by which k-Gibbs needs more steps at one coupling than at another, as a logarithm.

        slowdown = log(expected steps at the first coupling / expected steps at the second coupling)

    The k-Gibbs sampler resamples k random spins of an Ising model per step, until all coupled spins point up. All k
    smaller than the number of spins are used.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        first: Coupling J between the spins in the numerator.
        second: Coupling J in the denominator.
    """
    logs = select_exact_column(rows, "log_expected")[list_block_samplers(rows, below_all=1)].T
    return float((logs[first] - logs[second]).min())


@exact
def reached_by_reading(rows: Rows, chain: str, least: float, times: int) -> float:
    """Return the largest probability that a sampler turns all coupled spins of an Ising model up before it stops.

    The maximum is over couplings. The published energy can be read as counting each pair of spins once or twice.
    Counting twice at coupling J is the same as counting once at coupling 2 J.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        chain: Name of the sampler.
        least: Smallest coupling J between the spins.
        times: Number of times that the energy counts a pair, 1 or 2.

    Raises:
        NoRows: If no coupling of at least `least` was measured together with its double.
    """
    couplings = rows.distinct("setting", "coupling")
    chosen = [times * each for each in couplings if each >= least and 2 * each in couplings]
    if not chosen:
        raise NoRows(f"no J from {least:g} was measured together with its double")
    return float(select_exact_column(rows, "reached")[chain].loc[chosen].max())
