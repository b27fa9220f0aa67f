"""Statistics of the study about domain walls in Potts chains.

A chain generates sequences of tokens. Its energy is a sum over windows of successive tokens, and windows that follow
one of the stored patterns have energy zero. A domain wall is a place where the sequence changes from one pattern to
another. The crossing length L* is the sequence length from which walls are likely.
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
"""Columns that identify a chain at a temperature."""


def uniform(rows: Rows) -> DataFrame:
    """Return the measurements, by sequence length, of chains with at least two patterns of one repeated token.

    Every wrong token of a window costs the same energy in these chains.
    """
    return rows["length"].query(f"{SEVERAL} and family == {UNIFORM!r}")


def spins(rows: Rows, shape: str, low: float = 0.0, high: float = math.inf) -> DataFrame:
    """Return the magnetizations of Ising spins on the largest torus or ring.

    Args:
        rows: Measured rows of a run, by kind.
        shape: "plane" for a torus, or "ring".
        low: Lowest temperature.
        high: Highest temperature.

    Returns:
        One row per temperature and seed.
    """
    table = rows.where("spins", shape=shape)
    return table[(table.side == table.side.max()) & table.temperature.between(low, high)]


@exact
def wall_likelihood_from_crossing(rows: Rows) -> float:
    """Return the smallest probability of at least one domain wall, over chains and sequence lengths of at least L*.

    A domain wall is a change from one stored pattern to another, and L* is the crossing length of the chain.
    """
    crossing = rows["chain"].set_index(CHAIN).crossing_length
    lengths = rows["length"].query(SEVERAL).set_index(CHAIN)
    return float(lengths.wall[lengths.length >= crossing.reindex(lengths.index)].min())


@exact
def left_of_sharpness(rows: Rows) -> float:
    """Return the distance from 1/e of the probability that a sequence of the crossing length L* has no domain wall.

    The chain is the nearest-neighbor Potts chain with the lowest temperature relative to its coupling.
    """
    table = rows["closed form"]
    coldest = table.kept_at_crossing.iloc[int((table.temperature / table.penalty).argsort().iloc[0])]
    return abs(float(coldest) - math.exp(-1))


@exact
def smallest_step(rows: Rows, along: str) -> float:
    """Return the smallest log ratio of expected numbers of domain walls between successive values of a parameter.

    A domain wall is a change from one stored pattern to another. A positive result means that the number of walls
    always increases with the parameter. The patterns of the Potts chains repeat one token.

    Args:
        rows: Measured rows of a run, by kind.
        along: Name of the parameter: "patterns", "window", "temperature" or "length".
    """
    table = uniform(rows).sort_values(along)
    others = [name for name in ("patterns", "window", "temperature", "length") if name != along]
    return float(table.assign(step=np.log(table.walls)).groupby(others).step.diff().min())


@exact
def run_ratio(rows: Rows) -> float:
    """Return the smallest ratio of mean coherent lengths between chains with successive window sizes.

    The coherent length is the number of windows before the first domain wall, a change from one stored pattern to
    another. Chains are compared at the same ratio of the largest window energy to the temperature, on which their
    distribution depends. Lengths that are often cut off by the end of the sequence are omitted.

    Raises:
        NoRows: If no two window sizes can be compared.
    """
    table = uniform(rows)
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
    """Return the share of sampled sequences with a domain wall minus its exact probability.

    A domain wall is a change from one stored pattern of the Potts chain to another.

    Args:
        rows: Measured rows of a run, by kind.
        column: "drawn" for exact samples, or "gibbs" for Gibbs sampling from a stored pattern.

    Returns:
        One mean over chains and sequence lengths per seed.
    """
    table = rows["sampled"]
    return (table[column] - table.wall).groupby(table.seed).mean()


@draws
def rise(rows: Rows, *places: int) -> "Series[float]":
    """Return how much the share of sequences with a domain wall rises with the sequence length.

    A domain wall is a change from one stored pattern of the Potts chain to another. Sequences are sampled by Gibbs
    sampling from a stored pattern. The smallest rise over chains and successive lengths is returned.

    Args:
        rows: Measured rows of a run, by kind.
        *places: Indices of the lengths: 0 for a tenth of the crossing length, 1 for the crossing length, and 2 for ten
            times the crossing length. From the crossing length, walls are likely.

    Returns:
        One minimum per seed.
    """
    shares = rows["sampled"].pivot(index=["patterns", "window", "seed"], columns="place", values="gibbs")
    return shares[list(places)].diff(axis=1).min(axis=1).groupby("seed").min()


@draws
def share(rows: Rows, place: int) -> Counts:
    """Count the sequences with a domain wall after Gibbs sampling from a stored pattern.

    A domain wall is a change from one stored pattern of the Potts chain to another. The chain with the smallest count
    is used.

    Args:
        rows: Measured rows of a run, by kind.
        place: Index of the sequence length: 0 for a tenth of the crossing length, 1 for the crossing length, and 2 for
            ten times the crossing length. From the crossing length, walls are likely.

    Returns:
        Sequences with a wall and all sequences, per seed.
    """
    smallest = rows.where("sampled", place=place).groupby("seed").gibbs.min()
    return counts_from_shares(smallest, rows.config["chains"], identical=True)


@draws
def smallest_order(rows: Rows, shape: str, most: float) -> "Series[float]":
    """Return the smallest magnetization of Ising spins on the largest torus or ring.

    Args:
        rows: Measured rows of a run, by kind.
        shape: "plane" for a torus, or "ring".
        most: Highest temperature.

    Returns:
        One minimum over temperatures per seed.
    """
    return spins(rows, shape, high=most).groupby("seed").magnetisation.min()


@draws
def off_infinite(rows: Rows, shape: str, least: float = 0.0, most: float = math.inf) -> "Series[float]":
    """Return the largest distance of the magnetization of Ising spins from its value in the infinite system.

    Args:
        rows: Measured rows of a run, by kind.
        shape: "plane" for a torus, or "ring".
        least: Lowest temperature.
        most: Highest temperature.

    Returns:
        One maximum over temperatures per seed.
    """
    table = spins(rows, shape, least, most)
    return (table.magnetisation - table.onsager).abs().groupby(table.seed).max()


@draws
def change_with_size(rows: Rows, shape: str, most: float) -> "Series[float]":
    """Return the largest change of the magnetization of Ising spins from the smallest to the largest system.

    Args:
        rows: Measured rows of a run, by kind.
        shape: "plane" for a torus, or "ring".
        most: Highest temperature.

    Returns:
        One maximum over temperatures per seed.
    """
    table = rows.where("spins", shape=shape)
    sides = table[table.temperature <= most].pivot(
        index=["seed", "temperature"], columns="side", values="magnetisation"
    )
    return (sides.iloc[:, -1] - sides.iloc[:, 0]).abs().groupby("seed").max()
