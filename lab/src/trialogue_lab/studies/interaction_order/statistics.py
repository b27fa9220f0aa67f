"""Statistics of the study about the order in which networks learn interactions.

Networks of one to three layers predict single masked tokens of random distributions, in which up to four tokens
interact. Statistics have one number per distribution.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Counts, Replication, Rows, counts_from_shares, exact
from trialogue_lab.studies.interaction_order.config import DEPTHS

trainings = Replication("training", "seeds")
large_trainings = Replication("training", "large_seeds")
FORMS = dict(zip(DEPTHS, ("two", "three", "four"), strict=True))
"""Largest number of interacting tokens that a network can learn according to the document, by number of layers"""


def _select_trainings(rows: Rows, layers: int) -> DataFrame:
    return rows.where("training", layers=layers).set_index("seed")


def _count_in_order(rows: Rows, *layers: int) -> Counts:
    """Count the networks of three layers in which `layers` begin to learn in this order."""
    onsets = _select_trainings(rows, 3)[[f"onset_{layer}" for layer in layers]]
    return counts_from_shares((onsets.diff(axis=1).iloc[:, 1:] > 0).all(axis=1), trials=1)


@trainings
def loss(rows: Rows, layers: int) -> "Series[float]":
    """Return the final loss of a network on a random distribution, in nats per token.

    The network predicts single masked tokens of the distribution, in which up to four tokens interact.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        layers: Number of layers of the network, 1 to 3.

    Returns:
        One loss per seed of the distribution.
    """
    return _select_trainings(rows, layers).loss


@trainings
def bound(rows: Rows, form: str) -> "Series[float]":
    """Return the lowest loss that any predictor of a given kind can reach, in nats per token.

    The loss is the mean negative log-probability of single masked tokens of a random distribution, in which up to four
    tokens interact.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        form: Class of predictors. "two" and "three" are products of functions of at most two or three tokens. "four" is
            any predictor, whose lowest loss is the conditional entropy of a token.

    Returns:
        One loss per seed of the distribution.
    """
    return rows["law"].set_index("seed")[form]


@trainings
def excess(rows: Rows, layers: int) -> "Series[float]":
    """Return the final loss of a network minus the loss that the paper predicts for its number of layers.

        predicted loss of n layers = lowest possible loss with interactions of at most n + 1 tokens

    The network predicts single masked tokens of a random distribution, in which up to four tokens interact.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        layers: Number n of layers of the network, 1 to 3.

    Returns:
        One difference in nats per seed of the distribution.
    """
    table = _select_trainings(rows, layers)
    return table.loss - table[FORMS[layers]]


@trainings
def standing(rows: Rows, level: int) -> "Series[float]":
    """Return the relative length of a plateau of the training loss of a three-layer network.

    A plateau is a time during which the loss stays near the final loss of a shallower network.

        ratio = (training steps within 0.01 nats of this loss) / (training steps of the decrease before)

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        level: Number of layers of the shallower network, 1 or 2.

    Returns:
        One ratio per seed of the distribution. A ratio above 1 means that the loss has a plateau.
    """
    return _select_trainings(rows, 3)[f"stay_{level}"]


@trainings
def in_order(rows: Rows) -> Counts:
    """Count the three-layer networks whose last layer learns first and whose first layer learns last.

    A layer begins to learn when the mean squared change of its weights exceeds a tenth of its final value.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One success or failure per training seed.
    """
    return _count_in_order(rows, 3, 2, 1)


@trainings
def last_first(rows: Rows, layers: int = 3) -> Counts:
    """Count the networks in which the last layer begins to learn before all other layers.

    A layer begins to learn when the mean squared change of its weights exceeds a tenth of its final value.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        layers: Number of layers of the networks (default: 3).

    Returns:
        One success or failure per training seed.
    """
    table = _select_trainings(rows, layers)
    others = table[[f"onset_{layer}" for layer in range(1, layers)]].min(axis=1)
    return counts_from_shares((table[f"onset_{layers}"] < others).astype(float), 1)


@trainings
def middle_before_first(rows: Rows) -> Counts:
    """Count the three-layer networks in which the middle layer begins to learn before the first layer.

    A layer begins to learn when the mean squared change of its weights exceeds a tenth of its final value.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One success or failure per training seed.
    """
    return _count_in_order(rows, 2, 1)


@trainings
def pairs(rows: Rows, column: str) -> "Series[float]":
    """Return a measurement of two single attention layers that are trained on the same distribution.

    They predict masked tokens of sequences in which only pairs of tokens interact. One layer has factored attention,
    whose weights do not depend on the tokens. The other layer has standard attention.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "factored" or "standard" for the final loss of this layer, or "entropy" for the lowest possible loss,
            all in nats. "couplings" for the correlation of the factored layer's attention weights with the true
            interactions between positions. "similarities" for the correlation of its values with the true similarities
            between token values.

    Returns:
        One number per seed of the distribution.
    """
    return rows["pairs"].set_index("seed")[column]


@trainings
def pair_excess(rows: Rows, network: str) -> "Series[float]":
    """Return the loss of a single attention layer minus the lowest possible loss, in nats.

    The layer predicts single masked tokens of a distribution in which only pairs of tokens interact. The lowest
    possible loss is the conditional entropy of a token.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        network: "factored" for attention weights that do not depend on the tokens, or "standard" for softmax attention.

    Returns:
        One difference per seed of the distribution.
    """
    table = rows["pairs"].set_index("seed")
    return table[network] - table.entropy


@large_trainings
def large_loss(rows: Rows, layers: int) -> "Series[float]":
    """Return the final held-out loss of a network that predicts single masked tokens, for large distributions.

    The distributions are random and have the published size.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        layers: Number of layers of the network, 1 to 3.

    Returns:
        One loss in nats per token for each seed of the distribution.
    """
    table = rows.where("large-curve", layers=layers).sort_values("step")
    return table.groupby("seed").loss.last()


@large_trainings
def large_bound(rows: Rows, form: str) -> "Series[float]":
    """Return the held-out loss of a reference predictor of single masked tokens, for large distributions.

    The distributions are random and have the published size. The loss is the mean negative log-probability of a masked
    token given the others.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        form: "two" or "three" for a trained product of functions of at most two or three tokens. "four" for the exact
            conditional probabilities of the distribution.

    Returns:
        One loss in nats per token for each seed of the distribution.
    """
    return rows["large-law"].set_index("seed")[form]


@exact
def exchange_exponent(rows: Rows) -> float:
    """Return the exponent that relates the effect of exchanging two layers to the scale of the weights.

        relative change of the logits = constant * (initial scale of the weights)^exponent

    The exponent is fitted to networks with several initial scales. If it is positive, the order of the layers does not
    matter for small weights.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    means = np.log(rows["exchange"].change).groupby(rows["exchange"].scale).mean()
    return float(np.polyfit(np.log(means.index), means, 1)[0])
