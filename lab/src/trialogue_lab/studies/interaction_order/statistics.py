"""Statistics of the study about the order in which networks learn interactions.

Networks of one to three layers predict single masked tokens of random distributions. A k-body conditional distribution
depends on interactions of at most k tokens. Statistics have one number per distribution and its trainings.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact
from trialogue_lab.studies.interaction_order.config import DEPTHS

trainings = Replication("training", "seeds")
large_trainings = Replication("training", "large_seeds")
FORMS = dict(zip(DEPTHS, ("two", "three", "four"), strict=True))
"""The bodies that networks with this number of layers can learn according to the document."""


def _trainings_with(rows: Rows, layers: int) -> DataFrame:
    return rows.where("training", layers=layers).set_index("seed")


@trainings
def loss(rows: Rows, layers: int) -> "Series[float]":
    """Return the final loss of a network on a four-body distribution, in nats per token.

    Args:
        rows: Measured rows of a run, by kind.
        layers: Number of layers of the network, 1 to 3.

    Returns:
        One loss per seed of the distribution.
    """
    return _trainings_with(rows, layers).loss


@trainings
def bound(rows: Rows, form: str) -> "Series[float]":
    """Return the lowest loss of a predictor with limited interactions on a four-body distribution, in nats per token.

    Args:
        rows: Measured rows of a run, by kind.
        form: "two" or "three" for the best product form with interactions of at most two or three tokens, or "four" for
            the conditional entropy of a token.

    Returns:
        One loss per seed of the distribution.
    """
    return rows["law"].set_index("seed")[form]


@trainings
def excess(rows: Rows, layers: int) -> "Series[float]":
    """Return the final loss of a network minus the lowest loss that the source predicts for its number of layers.

    The prediction is the lowest two-body loss for one layer, three-body loss for two layers, and four-body loss for
    three layers.

    Args:
        rows: Measured rows of a run, by kind.
        layers: Number of layers of the network, 1 to 3.

    Returns:
        One difference in nats per seed of the distribution.
    """
    table = _trainings_with(rows, layers)
    return table.loss - table[FORMS[layers]]


@trainings
def standing(rows: Rows, level: int) -> "Series[float]":
    """Return how long the loss of a network with three layers stays at the final loss of a shallower network.

    Args:
        rows: Measured rows of a run, by kind.
        level: Number of layers of the shallower network, 1 or 2.

    Returns:
        One ratio per seed: steps at the plateau, divided by the steps of the descent to it.
    """
    return _trainings_with(rows, 3)[f"stay_{level}"]


@trainings
def in_order(rows: Rows) -> Counts:
    """Count the networks with three layers in which the last layer learns first and the first layer learns last.

    A layer begins to learn at the step when its displacement exceeds a tenth of its final displacement.

    Returns:
        One success or failure per seed.
    """
    table = _trainings_with(rows, 3)
    return counts_from_shares(
        ((table.onset_3 < table.onset_2) & (table.onset_2 < table.onset_1)).astype(float), 1
    )


@trainings
def last_first(rows: Rows, layers: int = 3) -> Counts:
    """Count the networks in which the last layer begins to learn before all other layers.

    A layer begins to learn at the step when its displacement exceeds a tenth of its final displacement.

    Args:
        rows: Measured rows of a run, by kind.
        layers: Number of layers of the networks (default: 3).

    Returns:
        One success or failure per seed.
    """
    table = _trainings_with(rows, layers)
    others = table[[f"onset_{layer}" for layer in range(1, layers)]].min(axis=1)
    return counts_from_shares((table[f"onset_{layers}"] < others).astype(float), 1)


@trainings
def middle_before_first(rows: Rows) -> Counts:
    """Count the networks with three layers in which the middle layer begins to learn before the first layer.

    Returns:
        One success or failure per seed.
    """
    table = _trainings_with(rows, 3)
    return counts_from_shares((table.onset_2 < table.onset_1).astype(float), 1)


@trainings
def pairs(rows: Rows, column: str) -> "Series[float]":
    """Return a measured value of single attention layers trained on two-body distributions.

    Args:
        rows: Measured rows of a run, by kind.
        column: "factored" or "standard" for the loss of this layer in nats, "entropy" for the lowest loss, or
            "couplings" or "similarities" for the correlation of the learned and the true matrices.

    Returns:
        One value per seed of the distribution.
    """
    return rows["pairs"].set_index("seed")[column]


@trainings
def pair_excess(rows: Rows, network: str) -> "Series[float]":
    """Return the loss of a single attention layer on a two-body distribution minus its entropy, in nats.

    Args:
        rows: Measured rows of a run, by kind.
        network: "factored" for factored attention, or "standard" for softmax attention.

    Returns:
        One difference per seed of the distribution.
    """
    table = rows["pairs"].set_index("seed")
    return table[network] - table.entropy


@large_trainings
def large_loss(rows: Rows, layers: int) -> "Series[float]":
    """Return the final held-out loss of a network on a distribution of the published size, in nats per token.

    Args:
        rows: Measured rows of a run, by kind.
        layers: Number of layers of the network, 1 to 3.

    Returns:
        One loss per seed of the distribution.
    """
    table = rows.where("large-curve", layers=layers).sort_values("step")
    return table.groupby("seed").loss.last()


@large_trainings
def large_bound(rows: Rows, form: str) -> "Series[float]":
    """Return the held-out loss of a predictor with limited interactions on a distribution of the published size.

    Args:
        rows: Measured rows of a run, by kind.
        form: "two" or "three" for a trained product form with interactions of at most two or three tokens, or "four"
            for the distribution itself.

    Returns:
        One loss in nats per token for each seed of the distribution.
    """
    return rows["large-law"].set_index("seed")[form]


@exact
def exchange_exponent(rows: Rows) -> float:
    """Return how fast the effect of exchanging the first two of three layers vanishes for small initial weights.

    The relative change of the logits is proportional to the initial scale of the weights to the power of the returned
    exponent.
    """
    means = np.log(rows["exchange"].change).groupby(rows["exchange"].scale).mean()
    return float(np.polyfit(np.log(means.index), means, 1)[0])
