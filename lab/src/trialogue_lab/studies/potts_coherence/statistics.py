"""Statistics of the study about domain walls in Potts chains.

A Potts chain is a distribution over token sequences. Its energy is a sum over windows of successive tokens, and windows
that follow a stored pattern have energy zero. A domain wall is a position where a sequence changes from one stored
pattern to another. The crossing length L* is the sequence length from which walls are likely in theory.
"""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows, counts_from_shares, exact
from trialogue_lab.studies.potts_coherence.chains import UNIFORM

draws = Replication("draw", "seeds")

SEVERAL = "patterns > 1"
"""Condition on rows of chains that can have walls."""
CHAIN = ["family", "patterns", "window", "penalty", "temperature"]
"""Columns that identify a chain and a temperature."""


def select_uniform_chains(rows: Rows) -> DataFrame:
    """Select the measurements of Potts chains whose stored patterns repeat one token.

    In these chains, every wrong token in a window of successive tokens costs the same energy. Chains with a single
    pattern are omitted.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One row per chain, temperature and sequence length.
    """
    return rows["length"].query(f"{SEVERAL} and family == {UNIFORM!r}")


def select_spins(rows: Rows, shape: str, low: float = 0.0, high: float = math.inf) -> DataFrame:
    """Select the measured magnetizations of Ising spins on the largest square lattice or ring.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        shape: "plane" for a square lattice, or "ring".
        low: Lowest temperature.
        high: Highest temperature.

    Returns:
        One row per temperature and seed.
    """
    table = rows.where("spins", shape=shape)
    return table[(table.side == table.side.max()) & table.temperature.between(low, high)]


@exact
def wall_likelihood_from_crossing(rows: Rows) -> float:
    """Return the smallest probability of a domain wall in sequences that are long enough for walls to be likely.

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another.
    Theory predicts the length from which walls are likely. The minimum is over chains, temperatures and
    longer lengths.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    crossing = rows["chain"].set_index(CHAIN).crossing_length
    lengths = rows["length"].query(SEVERAL).set_index(CHAIN)
    return float(lengths.wall[lengths.length >= crossing.reindex(lengths.index)].min())


@exact
def left_of_sharpness(rows: Rows) -> float:
    """Return how far the probability of no domain wall is from its predicted value 1/e.

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another. Sequences
    have the length from which theory predicts that walls are likely, at the lowest measured temperature. The result is
    an absolute difference.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    table = rows["closed form"]
    coldest = table.kept_at_crossing.iloc[int((table.temperature / table.penalty).argsort().iloc[0])]
    return abs(float(coldest) - math.exp(-1))


@exact
def smallest_step(rows: Rows, along: str) -> float:
    """Return the smallest increase of the number of domain walls with one parameter, as a log ratio.

        increase = difference of log(expected number of domain walls) between successive values of the parameter

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another. All other
    parameters are fixed.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        along: Name of the parameter: "patterns" (number of patterns), "window" (tokens per window), "temperature" or
            "length" (sequence length).

    Returns:
        The smallest difference of natural logarithms. If it is positive, the number of walls always increases.
    """
    table = select_uniform_chains(rows).sort_values(along)
    others = [name for name in ("patterns", "window", "temperature", "length") if name != along]
    return float(table.assign(step=np.log(table.walls)).groupby(others).step.diff().min())


@exact
def run_ratio(rows: Rows) -> float:
    """Return the smallest factor by which sequences follow a pattern longer if windows are one step larger.

    The energy of a Potts chain is a sum over windows of successive tokens. The measured length is the mean number of
    windows before a sequence changes to another pattern. Each window size is compared with the next smaller one.
    Lengths of more than half of the sequence are omitted, because the end of the sequence limits them.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The smallest ratio of mean lengths.

    Raises:
        NoRows: If no two window sizes can be compared.
    """
    table = select_uniform_chains(rows)
    longest = table[table.length == table.length.max()].sort_values("window")
    heat = (longest.temperature / longest.max_energy).round(9)
    shorter = longest.groupby([longest.patterns, heat])[["run", "windows"]].shift()
    # Long runs are cut off by the end of the chain, and are not compared.
    complete = shorter.run < 0.5 * shorter.windows
    if not complete.any():
        raise NoRows("no two windows have the same E_max / T")
    return float((longest.run / shorter.run)[complete].min())


@draws
def share_error(rows: Rows, column: str) -> "Series[float]":
    """Return the error of the observed share of sequences with a domain wall (observed share - exact probability).

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "drawn" for exact samples, or "gibbs" for Gibbs sampling that starts from a stored pattern.

    Returns:
        One mean difference over chains and sequence lengths per seed.
    """
    table = rows["sampled"]
    return (table[column] - table.wall).groupby(table.seed).mean()


@draws
def rise(rows: Rows, *places: int) -> "Series[float]":
    """Return the smallest increase of the share of sequences with a domain wall, from one length to the next.

    A domain wall is a position where a sequence of a Potts chain changes from one stored pattern to another.
    Gibbs sampling generates the sequences, starting from a stored pattern.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        *places: Indices of the compared lengths: 0, 1 and 2 for a tenth, one and ten times the length from
            which walls are likely in theory.

    Returns:
        The smallest difference of shares over chains and successive lengths, per seed.
    """
    shares = rows["sampled"].pivot(index=["patterns", "window", "seed"], columns="place", values="gibbs")
    return shares[list(places)].diff(axis=1).min(axis=1).groupby("seed").min()


@draws
def share(rows: Rows, place: int) -> Counts:
    """Count the sequences of a Potts chain that change from one stored pattern to another during Gibbs sampling.

    Such a change is called a domain wall. Gibbs sampling starts from a stored pattern. Only the chain with the fewest
    sequences with a wall counts.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        place: Index of the sequence length: 0, 1 or 2 for a tenth, one or ten times the length from which walls are
            likely in theory.

    Returns:
        The number of sequences with a wall and the number of all sequences, per seed.
    """
    smallest = rows.where("sampled", place=place).groupby("seed").gibbs.min()
    return counts_from_shares(smallest, rows.config["chains"], identical=True)


@draws
def smallest_order(rows: Rows, shape: str, most: float) -> "Series[float]":
    """Return the smallest magnetization of simulated Ising spins up to a temperature.

    The magnetization is the mean of all spins (+1 or -1). The largest measured square lattice or ring is used, and all
    spins point up at the start.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        shape: "plane" for a square lattice, or "ring".
        most: Highest temperature.

    Returns:
        One minimum over temperatures per seed.
    """
    return select_spins(rows, shape, high=most).groupby("seed").magnetisation.min()


@draws
def off_infinite(rows: Rows, shape: str, least: float = 0.0, most: float = math.inf) -> "Series[float]":
    """Return the largest difference in magnetization between a simulated and the infinite Ising model.

    The magnetization is the mean of all spins (+1 or -1), and is known exactly for the infinite model. The largest
    measured square lattice or ring is used.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        shape: "plane" for a square lattice, or "ring".
        least: Lowest temperature.
        most: Highest temperature.

    Returns:
        One maximum over temperatures per seed.
    """
    table = select_spins(rows, shape, least, most)
    return (table.magnetisation - table.onsager).abs().groupby(table.seed).max()


@draws
def change_with_size(rows: Rows, shape: str, most: float) -> "Series[float]":
    """Return the difference in magnetization between the largest and the smallest simulated Ising model.

    The magnetization is the mean of all spins (+1 or -1).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        shape: "plane" for a square lattice, or "ring".
        most: Highest temperature.

    Returns:
        The maximum over temperatures of the absolute difference, per seed.
    """
    table = rows.where("spins", shape=shape)
    sides = table[table.temperature <= most].pivot(
        index=["seed", "temperature"], columns="side", values="magnetisation"
    )
    return (sides.iloc[:, -1] - sides.iloc[:, 0]).abs().groupby("seed").max()
