"""Statistics of the study about transformers that are constructed to predict the next bracket.

A transformer is balanced if an opening bracket and its matching closing bracket cancel in the attention sums. It then
predicts exact probabilities. Normal noise in the attention scores, with standard deviation `disturbance`, violates the
balance. Statistics of networks with noise have one number per network. Statistics of the inequalities of Theorem 2.2.2
have one number for the run.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

networks = Replication("draw", "seeds")


@networks
def accuracy(rows: Rows, disturbance: float, longest: int) -> "Series[float]":
    """Return how often a transformer with noise predicts the correct closing bracket.

    Without noise, the transformer predicts exact probabilities. Normal noise is added to its attention scores.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        disturbance: Standard deviation of the noise.
        longest: Largest length of the prefixes, which selects one of the ranges `LENGTHS`.

    Returns:
        One share of prefixes per seed of the noise.
    """
    table = rows.where("disturbed", disturbance=disturbance, longest=longest)
    return table.groupby("seed").accuracy.mean()


@networks
def violation(rows: Rows, disturbance: float) -> "Series[float]":
    """Return the balance violation of a transformer with normal noise in its attention scores.

    The transformer predicts brackets. It is balanced if an opening bracket and its matching closing bracket cancel in
    the attention sums. The violation is the mean norm of the vectors that such pairs add, relative to the norm of the
    sum for a short prefix.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        disturbance: Standard deviation of the noise.

    Returns:
        One violation per seed of the noise. It is zero without noise, up to rounding.
    """
    return rows.where("disturbed", disturbance=disturbance).groupby("seed").violation.mean()


@networks
def distance(rows: Rows, disturbance: float, pairs: int) -> "Series[float]":
    """Return the distance between a transformer's representations of two prefixes after many bracket pairs.

    Both prefixes follow the same pairs of an opening and a closing bracket. The representations are normalized sums in
    the attention layer. Normal noise is added to the attention scores. If the pairs do not cancel in the sums, the
    distance decreases as 1 / `pairs` (equation 2.49).

    Args:
        rows: Measurements of a run, as one table per kind of row.
        disturbance: Standard deviation of the noise.
        pairs: Number of bracket pairs before the prefixes.

    Returns:
        One median distance over cases per seed of the noise.
    """
    return rows.where("pumped", disturbance=disturbance, pairs=pairs).groupby("seed").distance.mean()


@networks
def slope(rows: Rows, disturbance: float) -> "Series[float]":
    """Return how fast a transformer's representations of two prefixes become similar after more bracket pairs.

    Both prefixes follow the same pairs of an opening and a closing bracket. The representations are normalized sums in
    the attention layer. Normal noise is added to the attention scores.

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
    """Return how often an inequality in the proof of Theorem 2.2.2 is violated.

    The theorem states that matched brackets nearly cancel in the attention sums of a network with small errors. Its
    proof is a chain of three inequalities.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        step: Name of the inequality, "first", "second" or "third".
    """
    return float(rows["chain"][step].sum())


@exact
def positive(rows: Rows, network: str) -> float:
    """Return for how many networks the first inequality of Theorem 2.2.2 is nontrivial.

    It is not trivial if it requires a positive distance between the representations of two prefixes.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        network: "random" for random networks, or "disturbed" for constructed networks with noise in their attention
            scores.
    """
    return float((rows.where("chain", network=network).positive > 0).sum())


@exact
def slack(rows: Rows, network: str) -> float:
    """Return the slack of the last inequality of Theorem 2.2.2, as the median over networks.

    The slack is the decimal logarithm of the upper bound divided by the bounded number. It is zero for an equality.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        network: "random" for random networks, or "disturbed" for constructed networks with noise in their attention
            scores.
    """
    return float(rows.where("chain", network=network).slack.median())
