"""Quantities of the study: by network that is disturbed, and exact ones of all inequalities."""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

networks = Replication("draw", "seeds")


@networks
def accuracy(rows: Rows, disturbance: float, longest: int) -> "Series[float]":
    """How often the right type is likeliest to close, behind closing brackets in prefixes of up to `longest`."""
    table = rows.where("disturbed", disturbance=disturbance, longest=longest)
    return table.groupby("seed").accuracy.mean()


@networks
def violation(rows: Rows, disturbance: float) -> "Series[float]":
    """Balance violation, the thesis' statistic."""
    return rows.where("disturbed", disturbance=disturbance).groupby("seed").violation.mean()


@networks
def distance(rows: Rows, disturbance: float, pairs: int) -> "Series[float]":
    """How far normed sums of two prefixes are apart behind so many pairs, the median over prefixes."""
    return rows.where("pumped", disturbance=disturbance, pairs=pairs).groupby("seed").distance.mean()


@networks
def slope(rows: Rows, disturbance: float) -> "Series[float]":
    """The slope of log distance over log pairs, between 1,000 and 100,000 pairs."""
    table = rows.where("pumped", disturbance=disturbance).pivot_table("distance", "seed", "pairs")
    return (np.log10(table[100_000]) - np.log10(table[1000])) / 2


@exact
def failed(rows: Rows, step: str) -> float:
    """How many cases of the inequality fail, over all networks."""
    return float(rows["chain"][step].sum())


@exact
def positive(rows: Rows, network: str) -> float:
    """The number of networks of which the first inequality asks more than nothing."""
    return float((rows.where("chain", network=network).positive > 0).sum())


@exact
def slack(rows: Rows, network: str) -> float:
    """The decimal logarithm of the bound over the largest |S|, the median over networks (and queries)."""
    return float(rows.where("chain", network=network).slack.median())
