"""Statistics of the study about transformers that are constructed to recognize bracket strings.

A network in perfect balance predicts exact next-bracket probabilities at all lengths. Normal noise in its attention
scores, with standard deviation `disturbance`, violates the balance. Statistics of networks with noise have one number
per network. Statistics of the inequalities of Theorem 2.2.2 have one number for the run.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

networks = Replication("draw", "seeds")


@networks
def accuracy(rows: Rows, disturbance: float, longest: int) -> "Series[float]":
    """Return how often a constructed network with noise predicts the correct type of the next closing bracket.

    Args:
        rows: Measured rows of a run, by kind.
        disturbance: Standard deviation of the noise in the attention scores.
        longest: Largest length of the prefixes, which selects one of the ranges `LENGTHS`.

    Returns:
        One share of prefixes per seed of the network.
    """
    table = rows.where("disturbed", disturbance=disturbance, longest=longest)
    return table.groupby("seed").accuracy.mean()


@networks
def violation(rows: Rows, disturbance: float) -> "Series[float]":
    """Return the balance violation of a constructed network with noise, as defined in the thesis.

    Args:
        rows: Measured rows of a run, by kind.
        disturbance: Standard deviation of the noise in the attention scores.

    Returns:
        One violation per seed of the network. It is zero without noise, up to rounding.
    """
    return rows.where("disturbed", disturbance=disturbance).groupby("seed").violation.mean()


@networks
def distance(rows: Rows, disturbance: float, pairs: int) -> "Series[float]":
    """Return how far apart a network represents two different prefixes that both follow many matched bracket pairs.

    The representations are the sums in the attention layer after normalization. If matched pairs do not cancel in these
    sums, the distance falls as 1 / `pairs` (equation 2.49).

    Args:
        rows: Measured rows of a run, by kind.
        disturbance: Standard deviation of the noise in the attention scores.
        pairs: Number of matched bracket pairs before the prefixes.

    Returns:
        One median distance over pairs of prefixes per seed of the network.
    """
    return rows.where("pumped", disturbance=disturbance, pairs=pairs).groupby("seed").distance.mean()


@networks
def slope(rows: Rows, disturbance: float) -> "Series[float]":
    """Return the slope of log `distance` against the logarithm of the number of preceding bracket pairs.

    Args:
        rows: Measured rows of a run, by kind.
        disturbance: Standard deviation of the noise in the attention scores.

    Returns:
        One slope between 1,000 and 100,000 pairs per seed of the network.
    """
    far, near = (distance(disturbance, pairs)(rows) for pairs in (100_000, 1000))
    return (far / near).map(np.log10) / 2


@exact
def failed(rows: Rows, step: str) -> float:
    """Return the number of cases in which an inequality of Theorem 2.2.2 is violated, over all networks.

    Args:
        rows: Measured rows of a run, by kind.
        step: Name of the inequality, "first", "second" or "third".
    """
    return float(rows["chain"][step].sum())


@exact
def positive(rows: Rows, network: str) -> float:
    """Return the number of networks for which the first inequality of Theorem 2.2.2 requires a positive distance.

    Args:
        rows: Measured rows of a run, by kind.
        network: "random" for random networks, or "disturbed" for constructed networks with noise.
    """
    return float((rows.where("chain", network=network).positive > 0).sum())


@exact
def slack(rows: Rows, network: str) -> float:
    """Return how loose the last inequality of Theorem 2.2.2 is, as the median over networks.

    The slack is the decimal logarithm of the upper bound divided by the bounded quantity |S|.

    Args:
        rows: Measured rows of a run, by kind.
        network: "random" for random networks, or "disturbed" for constructed networks with noise.
    """
    return float(rows.where("chain", network=network).slack.median())
