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
    """Return how often a constructed transformer with noise predicts the correct type of the next closing bracket.

    The transformer is constructed to recognize bracket strings of all lengths. Normal noise is added to its attention
    scores.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        disturbance: Standard deviation of the noise.
        longest: Largest length of the prefixes of bracket strings, which selects one of the ranges `LENGTHS`.

    Returns:
        One share of prefixes per seed of the noise.
    """
    table = rows.where("disturbed", disturbance=disturbance, longest=longest)
    return table.groupby("seed").accuracy.mean()


@networks
def violation(rows: Rows, disturbance: float) -> "Series[float]":
    """Return the balance violation of a constructed transformer with noise in its attention scores.

    The transformer is constructed to recognize bracket strings. It is balanced if every matched bracket pair adds zero
    to the attention sums. The violation is the mean norm of the vectors that pairs add, relative to the norm for a
    short prefix.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        disturbance: Standard deviation of the noise.

    Returns:
        One violation per seed of the noise. It is zero without noise, up to rounding.
    """
    return rows.where("disturbed", disturbance=disturbance).groupby("seed").violation.mean()


@networks
def distance(rows: Rows, disturbance: float, pairs: int) -> "Series[float]":
    """Return how differently a transformer represents two prefixes that both follow many matched bracket pairs.

    The transformer is constructed to recognize bracket strings, and normal noise is added to its attention scores. The
    representations are the sums in the attention layer after normalization. If matched pairs do not cancel in these
    sums, the distance decreases as 1 / `pairs` (equation 2.49).

    Args:
        rows: Measurements of a run, as one table per kind of row.
        disturbance: Standard deviation of the noise.
        pairs: Number of matched bracket pairs before the prefixes.

    Returns:
        One median distance over pairs of prefixes per seed of the noise.
    """
    return rows.where("pumped", disturbance=disturbance, pairs=pairs).groupby("seed").distance.mean()


@networks
def slope(rows: Rows, disturbance: float) -> "Series[float]":
    """Return how fast the distance between representations decreases with the number of preceding bracket pairs.

    A transformer is constructed to recognize bracket strings, and normal noise is added to its attention scores. It
    reads two different prefixes, which both follow the same number of matched bracket pairs. The distance is measured
    between the normalized sums in its attention layer.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        disturbance: Standard deviation of the noise.

    Returns:
        One slope of log distance against log number of pairs, between 1,000 and 100,000 pairs, per seed of the noise.
    """
    far, near = (distance(disturbance, pairs)(rows) for pairs in (100_000, 1000))
    return (far / near).map(np.log10) / 2


@exact
def failed(rows: Rows, step: str) -> float:
    """Return the number of cases in which an inequality of Theorem 2.2.2 is violated, over all networks.

    The theorem states that matched bracket pairs nearly cancel in the attention sums of a network with small errors on
    long bracket strings. Its proof is a chain of three inequalities.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        step: Name of the inequality, "first", "second" or "third".
    """
    return float(rows["chain"][step].sum())


@exact
def positive(rows: Rows, network: str) -> float:
    """Return the number of networks for which the first inequality of Theorem 2.2.2 is not trivial.

    It is not trivial if it requires a positive distance between the representations of two prefixes of bracket strings.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        network: "random" for random networks, or "disturbed" for constructed networks with noise in their attention
            scores.
    """
    return float((rows.where("chain", network=network).positive > 0).sum())


@exact
def slack(rows: Rows, network: str) -> float:
    """Return how far the last inequality of Theorem 2.2.2 is from equality, as the median over networks.

    The slack is the decimal logarithm of the upper bound divided by the bounded quantity |S|. It is zero for an
    equality.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        network: "random" for random networks, or "disturbed" for constructed networks with noise in their attention
            scores.
    """
    return float(rows.where("chain", network=network).slack.median())
