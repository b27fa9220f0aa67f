"""Statistics of the study: extremes over exact chains, and numbers by seed from samples."""

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
    """Return the rows by length of chains with two or more uniform one-token patterns."""
    return rows["length"].query(f"{SEVERAL} and family == {UNIFORM!r}")


def spins(rows: Rows, shape: str, low: float = 0.0, high: float = math.inf) -> DataFrame:
    """Return the magnetisations on the largest torus or ring at temperatures from `low` to `high`."""
    table = rows.where("spins", shape=shape)
    return table[(table.side == table.side.max()) & table.temperature.between(low, high)]


@exact
def wall_likelihood_from_crossing(rows: Rows) -> float:
    """Return the smallest P(at least one wall) over lengths of at least L*."""
    crossing = rows["chain"].set_index(CHAIN).crossing_length
    lengths = rows["length"].query(SEVERAL).set_index(CHAIN)
    return float(lengths.wall[lengths.length >= crossing.reindex(lengths.index)].min())


@exact
def left_of_sharpness(rows: Rows) -> float:
    """Return the distance of P(no wall) at L* from 1/e in the coldest nearest-neighbour chain."""
    table = rows["closed form"]
    coldest = table.kept_at_crossing.iloc[int((table.temperature / table.penalty).argsort().iloc[0])]
    return abs(float(coldest) - math.exp(-1))


@exact
def smallest_step(rows: Rows, along: str) -> float:
    """Return the smallest log ratio of expected walls between successive values of `along` (uniform patterns)."""
    table = uniform(rows).sort_values(along)
    others = [name for name in ("patterns", "window", "temperature", "length") if name != along]
    return float(table.assign(step=np.log(table.walls)).groupby(others).step.diff().min())


@exact
def run_ratio(rows: Rows) -> float:
    """Return the smallest ratio of first coherent runs between successive windows at the same E_max / T.

    The distribution of a chain depends on E / T only, so that this is a comparison at fixed E_max.
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
    """Return the share of chains with a wall minus its exact value, averaged over chains and lengths."""
    table = rows["sampled"]
    return (table[column] - table.wall).groupby(table.seed).mean()


@draws
def rise(rows: Rows, *places: int) -> "Series[float]":
    """Return the smallest rise, over chains, of the share of Gibbs chains with a wall between the given lengths."""
    shares = rows["sampled"].pivot(index=["patterns", "window", "seed"], columns="place", values="gibbs")
    return shares[list(places)].diff(axis=1).min(axis=1).groupby("seed").min()


@draws
def share(rows: Rows, place: int) -> Counts:
    """Return the smallest share, over chains, of Gibbs chains with a wall at one of the lengths."""
    smallest = rows.where("sampled", place=place).groupby("seed").gibbs.min()
    return counts_from_shares(smallest, rows.config["chains"], identical=True)


@draws
def smallest_order(rows: Rows, shape: str, most: float) -> "Series[float]":
    """Return the smallest magnetisation on the largest torus or ring at temperatures up to `most`."""
    return spins(rows, shape, high=most).groupby("seed").magnetisation.min()


@draws
def off_infinite(rows: Rows, shape: str, least: float = 0.0, most: float = math.inf) -> "Series[float]":
    """Return the largest distance of the magnetisation from its value in the infinite system."""
    table = spins(rows, shape, least, most)
    return (table.magnetisation - table.onsager).abs().groupby(table.seed).max()


@draws
def change_with_size(rows: Rows, shape: str, most: float) -> "Series[float]":
    """Return the largest change of the magnetisation from the smallest to the largest system at T up to `most`."""
    table = rows.where("spins", shape=shape)
    sides = table[table.temperature <= most].pivot(
        index=["seed", "temperature"], columns="side", values="magnetisation"
    )
    return (sides.iloc[:, -1] - sides.iloc[:, 0]).abs().groupby("seed").max()
