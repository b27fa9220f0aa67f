"""Statistics of the study about transformers that are constructed to predict the next bracket.

A transformer is balanced if an opening bracket and its matching closing bracket cancel in the attention sums. It then
predicts exact probabilities. Normal noise in the attention scores, with standard deviation `disturbance`, destroys the
balance. Statistics of networks with noise have one number per network. Statistics of the inequalities of Theorem 2.2.2
have one number per run.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

networks = Replication("draw", "seeds")


@networks
def accuracy(rows: Rows, disturbance: float, longest: int) -> "Series[float]":
    """Return the share of prefixes at which a noisy transformer predicts the correct closing bracket.

    Without noise, the transformer predicts the exact probabilities of the next bracket. Normal noise is added to its
    attention scores. A prediction is correct if the most probable closing bracket matches the innermost open bracket.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        disturbance: Standard deviation of the noise.
        longest: Largest length of the prefixes: 60 selects lengths 20 to 60, 500 selects 400 to 500, and 5000 selects
            4000 to 5000.

    Returns:
        One fraction of prefixes per seed of the noise.
    """
    table = rows.where("disturbed", disturbance=disturbance, longest=longest)
    return table.groupby("seed").accuracy.mean()


@networks
def violation(rows: Rows, disturbance: float) -> "Series[float]":
    """Return the balance violation of a transformer with normal noise in its attention scores.

    Without noise, each opening bracket and its closing bracket cancel in the attention sums. The violation is
    the mean norm of what such a pair adds to the sum, divided by the norm of the sum for a short prefix.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        disturbance: Standard deviation of the noise.

    Returns:
        One violation per seed of the noise. Without noise, it is zero up to rounding.
    """
    return rows.where("disturbed", disturbance=disturbance).groupby("seed").violation.mean()


@networks
def distance(rows: Rows, disturbance: float, pairs: int) -> "Series[float]":
    """Return how well a noisy transformer distinguishes two prefixes that end with many matched brackets.

    The result is the distance between its hidden states for two prefixes, which start with the same `pairs` pairs of an
    opening and a closing bracket. If noise prevents these pairs from canceling in the attention sums, the distance
    decreases as 1 / `pairs` (equation 2.49).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        disturbance: Standard deviation of the normal noise in the attention scores.
        pairs: Number of bracket pairs at the start of the prefixes.

    Returns:
        One median distance over pairs of prefixes per seed of the noise.
    """
    return rows.where("pumped", disturbance=disturbance, pairs=pairs).groupby("seed").distance.mean()


@networks
def slope(rows: Rows, disturbance: float) -> "Series[float]":
    """Return how fast a noisy transformer loses the difference between two prefixes with many matched brackets.

        slope = log10(distance(100,000 pairs) / distance(1,000 pairs)) / 2

    The distance is that of the hidden states of two prefixes (see `distance`). Theory predicts -1 if there is any noise
    in the attention scores.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        disturbance: Standard deviation of the noise.

    Returns:
        One slope per seed of the noise.
    """
    far, near = (distance(disturbance, pairs)(rows) for pairs in (100_000, 1000))
    return (far / near).map(np.log10) / 2


@exact
def failed(rows: Rows, step: str) -> float:
    """Return how often networks violate one of the inequalities in a proof.

    Theorem 2.2.2 states that matched brackets nearly cancel in the attention sums of a network with small errors. Its
    proof is a chain of three inequalities, which are evaluated on several networks that predict brackets.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        step: Name of the inequality, "first", "second" or "third".

    Returns:
        Number of violations over all networks.
    """
    return float(rows["chain"][step].sum())


@exact
def positive(rows: Rows, network: str) -> float:
    """Return the number of networks for which a theoretical lower bound on a distance is not trivial.

    The distance is between the representations of two bracket strings in a network. The bound is the first inequality
    of Theorem 2.2.2, and is trivial if it is zero or negative.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        network: "random" for random networks, or "disturbed" for constructed networks with noise in their attention
            scores.
    """
    return float((rows.where("chain", network=network).positive > 0).sum())


@exact
def slack(rows: Rows, network: str) -> float:
    """Return how far a theoretical upper bound is above the bounded quantity, as the median of a log ratio.

        slack = log10(upper bound / bounded quantity)

    The bound is an inequality in the proof of Theorem 2.2.2. It limits what a pair of matched brackets adds to the
    attention sums of a network.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        network: "random" for random networks, or "disturbed" for constructed networks with noise in their attention
            scores.
    """
    return float(rows.where("chain", network=network).slack.median())
