"""Quantities of the study: the worst case over chains, and one number per seed of what is drawn."""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows, exact, shares_of
from trialogue_lab.studies.potts_coherence.chains import UNIFORM

draws = Replication("draw", "seeds")

SEVERAL = "patterns > 1"
"""Chains that have walls."""
CHAIN = ["family", "patterns", "window", "penalty", "temperature"]
"""What names a chain at a temperature."""


def uniform(rows: Rows) -> DataFrame:
    """Walls and runs of the chains whose patterns, two or more, have one token each and cost alike."""
    return rows["length"].query(f"{SEVERAL} and family == {UNIFORM!r}")


def spins(rows: Rows, shape: str, least: float = 0.0, most: float = math.inf) -> DataFrame:
    """Magnetisations on the largest torus, or ring, at temperatures `least` to `most`."""
    table = rows.where("spins", shape=shape)
    return table[(table.side == table.side.max()) & table.temperature.between(least, most)]


@exact
def wall_likelihood_from_crossing(rows: Rows) -> float:
    """The smallest P(at least one wall) over lengths of at least L*."""
    crossing = rows["chain"].set_index(CHAIN).crossing_length
    lengths = rows["length"].query(SEVERAL).set_index(CHAIN)
    return float(lengths.wall[lengths.length >= crossing.reindex(lengths.index)].min())


@exact
def left_of_sharpness(rows: Rows) -> float:
    """How far P(no wall) at L* is from 1/e in the coldest nearest-neighbour chain."""
    table = rows["closed form"]
    coldest = table.kept_at_crossing.iloc[int((table.temperature / table.penalty).argsort().iloc[0])]
    return abs(float(coldest) - math.exp(-1))


@exact
def smallest_step(rows: Rows, along: str) -> float:
    """The least log ratio of expected walls, uniform patterns, from one value of `along` to the next."""
    table = uniform(rows).sort_values(along)
    others = [name for name in ("patterns", "window", "temperature", "length") if name != along]
    return float(table.assign(step=np.log(table.walls)).groupby(others).step.diff().min())


@exact
def run_ratio(rows: Rows) -> float:
    """The least ratio of the first coherent run of a window to that of the next shorter one at the same E_max / T.

    The law of a chain depends on its energies in units of T alone, so that this is a comparison at fixed E_max.
    """
    table = uniform(rows)
    longest = table[table.length == table.length.max()].sort_values("window")
    heat = (longest.temperature / longest.max_energy).round(9)
    shorter = longest.groupby([longest.patterns, heat])[["run", "windows"]].shift()
    # Runs that the chain cuts off say nothing of how long they would be.
    free = shorter.run < 0.5 * shorter.windows
    if not free.any():
        raise NoRows("no two windows at the same E_max / T")
    return float((longest.run / shorter.run)[free].min())


@draws
def share_error(rows: Rows, column: str) -> "Series[float]":
    """Share of chains with a wall less the computed probability, mean over chains and lengths."""
    table = rows["sampled"]
    return (table[column] - table.wall).groupby(table.seed).mean()


@draws
def rise(rows: Rows, *places: int) -> "Series[float]":
    """Rise of the share of Gibbs chains with a wall from each of the lengths to the next, the smallest over chains."""
    shares = rows["sampled"].pivot(index=["patterns", "window", "seed"], columns="place", values="gibbs")
    return shares[list(places)].diff(axis=1).min(axis=1).groupby("seed").min()


@draws
def share(rows: Rows, place: int) -> Counts:
    """Share of Gibbs chains with a wall at one of the lengths, in the model where it is smallest."""
    smallest = rows.where("sampled", place=place).groupby("seed").gibbs.min()
    return shares_of(smallest, rows.config["chains"], identical=True)


@draws
def smallest_order(rows: Rows, shape: str, most: float) -> "Series[float]":
    """The smallest magnetisation at temperatures up to `most`, on the largest torus or ring."""
    return spins(rows, shape, most=most).groupby("seed").magnetisation.min()


@draws
def off_infinite(rows: Rows, shape: str, least: float = 0.0, most: float = math.inf) -> "Series[float]":
    """How far the magnetisation is from that of the infinite plane or ring, at most over some temperatures."""
    table = spins(rows, shape, least, most)
    return (table.magnetisation - table.onsager).abs().groupby(table.seed).max()


@draws
def change_with_size(rows: Rows, shape: str, most: float) -> "Series[float]":
    """How much the magnetisation changes from the smallest to the largest torus, at most over T up to `most`."""
    table = rows.where("spins", shape=shape)
    sides = table[table.temperature <= most].pivot(
        index=["seed", "temperature"], columns="side", values="magnetisation"
    )
    return (sides.iloc[:, -1] - sides.iloc[:, 0]).abs().groupby("seed").max()
