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


def chains(rows: Rows) -> list[str]:
    """Return the names of the samplers of the Ising model.

    They are the k-Gibbs samplers in ascending order of k, which resample k random spins per step, and then "independent
    parallel", which resamples all spins independently.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return rows["exact"].chain.unique().tolist()


def blocks(rows: Rows, smallest: int = 1, below_all: int = 0) -> list[str]:
    """Return the names of the k-Gibbs samplers with k in a range.

    They resample k random spins of an Ising model per step.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        smallest: Smallest number k of spins.
        below_all: The largest k is the largest measured number minus `below_all`.

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


def expected(rows: Rows, column: str) -> DataFrame:
    """Return one exact property of all samplers of the Ising model as a table.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        column: Name of the property, for example "log_expected", the logarithm of the expected number of steps until
            all coupled spins point up.

    Returns:
        One row per coupling J between the spins, and one column per sampler.
    """
    return rows["exact"].pivot(index="coupling", columns="chain", values=column)[chains(rows)]


def simulated(rows: Rows, column: str, names: Sequence[str], most: float = math.inf) -> DataFrame:
    """Return one property of simulated Markov chains as a table.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        column: Name of the property, for example "mean", the mean number of steps until all coupled spins point up.
        names: Names of the samplers.
        most: Largest coupling J between the spins.

    Returns:
        One row per coupling and seed, and one column per sampler.
    """
    table = rows["simulated"]
    table = table[table.coupling <= most]
    return table.pivot(index=["coupling", "seed"], columns="chain", values=column)[list(names)]


@draws
def steps(rows: Rows, coupling: float, chain: str, column: str = "mean") -> "Series[float]":
    """Return the simulated number of steps T until all coupled spins point up.

    All spins point down at the start. Chains stop after a fixed number of steps, the budget.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        coupling: Coupling J between the spins.
        chain: Name of the sampler, for example "k = 2", which resamples two random spins per step.
        column: "mean" (default) or "deviation" (standard deviation) of min(T, budget) over chains, or "reached" for the
            share of chains with T <= budget.

    Returns:
        One number per seed.
    """
    return simulated(rows, column, [chain])[chain].xs(coupling, level="coupling")


@draws
def log_steps_ratio(rows: Rows, first: str, second: str, most: float = math.inf) -> "Series[float]":
    """Return the log ratio of the numbers of steps that two samplers need.

    The samplers run until all coupled spins point up. All spins of an Ising model point down at the start. Numbers of
    steps are averaged over simulated chains, and log ratios over couplings.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        first: Name of the sampler in the numerator.
        second: Name of the sampler in the denominator.
        most: Largest coupling J between the spins.

    Returns:
        One mean log ratio per seed.
    """
    logs = np.log(simulated(rows, "mean", [first, second], most))
    return (logs[first] - logs[second]).groupby("seed").mean()


@draws
def slowdown(rows: Rows, first: float, second: float, below_all: int = 0) -> "Series[float]":
    """Return the log ratio of the numbers of steps that samplers need at two couplings.

    The sampler k-Gibbs resamples k random spins of an Ising model per step, until all coupled spins point up. Simulated
    chains start with all spins down. Log ratios are averaged over the numbers k.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        first: Coupling J in the numerator.
        second: Coupling J in the denominator.
        below_all: The largest k is the largest measured number minus `below_all`.

    Returns:
        One mean log ratio per seed.
    """
    logs = np.log(simulated(rows, "mean", blocks(rows, below_all=below_all))).mean(axis=1).unstack("coupling")
    return logs[first] - logs[second]


@draws
def steps_over_exact(rows: Rows, least: int) -> "Series[float]":
    """Return the ratio of simulated to exact mean numbers of steps.

    Steps are counted until all coupled spins of an Ising model point up. The sampler k-Gibbs resamples k random spins
    per step and starts with all spins down. Ratios are averaged over couplings and numbers k.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        least: Smallest number k of spins.

    Returns:
        One mean ratio per seed.
    """
    simulated_means, exact_means = _simulated_and_exact(rows, "mean", blocks(rows, least))
    return (simulated_means / exact_means).mean(axis=1).groupby("seed").mean()


@draws
def arrivals_above_exact(rows: Rows) -> "Series[float]":
    """Return the share of successful chains minus the exact probability of success.

    A chain is successful if all coupled spins of an Ising model point up in time. Chains start with all spins down and
    stop after a fixed number of steps.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One difference per seed, averaged over samplers and couplings.
    """
    shares, probabilities = _simulated_and_exact(rows, "reached", chains(rows))
    return (shares - probabilities).mean(axis=1).groupby("seed").mean()


def _simulated_and_exact(rows: Rows, column: str, names: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Return simulated numbers, and the exact numbers in the same shape."""
    measured = simulated(rows, column, names)
    truth = expected(rows, column)[measured.columns]
    return measured, truth.loc[measured.index.get_level_values("coupling")].set_axis(measured.index)


@exact
def exact_number(rows: Rows, coupling: float, chain: str, column: str = "mean") -> float:
    """Return an exact property of the number of steps T of a sampler.

    T is the number of steps until all coupled spins of an Ising model point up. The sampler starts with all spins down.
    The budget is the number of steps after which simulated chains stop.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        coupling: Coupling J between the spins.
        chain: Name of the sampler.
        column: "mean" (default) or "deviation" (standard deviation) of min(T, budget), "reached" for the probability
            that T <= budget, or "log_expected" for the logarithm of the expectation of T.
    """
    return float(expected(rows, column)[chain].loc[coupling])


@exact
def largest_increase_with_blocks(rows: Rows) -> float:
    """Return the largest increase of log expected steps from one k to the next.

    The sampler k-Gibbs resamples k random spins of an Ising model per step, until all coupled spins point up. Each k is
    compared with the next larger one, at each coupling. The result is negative if a larger k is always faster.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    increases = expected(rows, "log_expected")[blocks(rows)].diff(axis=1)
    return float(increases.melt()["value"].max())


@exact
def smallest_increase_with_coupling(rows: Rows) -> float:
    """Return the smallest increase of log expected steps from one coupling to the next.

    The sampler k-Gibbs resamples k random spins of an Ising model per step, until all coupled spins point up. The
    minimum is taken over couplings and numbers k. It is positive if stronger couplings always slow the sampler down.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    increases = expected(rows, "log_expected")[blocks(rows)].diff()
    return float(increases.melt()["value"].min())


@exact
def smallest_slowdown(rows: Rows, first: float, second: float) -> float:
    """Return the smallest log ratio of the expected steps at two couplings.

    The sampler k-Gibbs resamples k random spins of an Ising model per step, until all coupled spins point up. The
    minimum is taken over all k smaller than the number of spins.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        first: Coupling J in the numerator.
        second: Coupling J in the denominator.
    """
    logs = expected(rows, "log_expected")[blocks(rows, below_all=1)].T
    return float((logs[first] - logs[second]).min())


@exact
def reached_by_reading(rows: Rows, chain: str, least: float, times: int) -> float:
    """Return the largest probability that all coupled spins point up in time.

    Chains stop after a fixed number of steps. The maximum is taken over couplings J. The published energy can be read
    as counting each pair of spins once or twice. A model with the coupling 2 J is the model with the coupling J in
    which every pair is counted twice.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        chain: Name of the sampler.
        least: Smallest coupling J.
        times: Number of times that the energy counts a pair, 1 or 2.

    Raises:
        NoRows: If no coupling of at least `least` was measured together with its double.
    """
    couplings = rows.distinct("setting", "coupling")
    chosen = [times * each for each in couplings if each >= least and 2 * each in couplings]
    if not chosen:
        raise NoRows(f"no J from {least:g} was measured together with its double")
    return float(expected(rows, "reached")[chain].loc[chosen].max())
