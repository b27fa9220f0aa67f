"""Statistics of the study about the order in which networks learn interactions.

Networks of one to three layers predict single masked tokens of random distributions, in which up to four tokens
interact. Statistics have one number per distribution and its trainings.
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


def _count_in_order(rows: Rows, *layers: int) -> Counts:
    """Count the networks of three layers in which `layers` learn in this order."""
    onsets = _trainings_with(rows, 3)[[f"onset_{layer}" for layer in layers]]
    return counts_from_shares((onsets.diff(axis=1).iloc[:, 1:] > 0).all(axis=1), trials=1)


@trainings
def loss(rows: Rows, layers: int) -> "Series[float]":
    """Return the final loss of a network on a random distribution, in nats per token.

    The network is trained to predict single masked tokens of the distribution, in which up to four tokens interact.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        layers: Number of layers of the network, 1 to 3.

    Returns:
        One loss per seed of the distribution.
    """
    return _trainings_with(rows, layers).loss


@trainings
def bound(rows: Rows, form: str) -> "Series[float]":
    """Return the lowest possible loss with interactions of few tokens, in nats per token.

    The loss is the negative log-probability of single masked tokens of a random distribution, in which up to four
    tokens interact.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        form: "two" or "three" for the best predictor that is a product of functions of at most two or three tokens.
            "four" for the conditional entropy of a token, which is the lowest loss of any predictor.

    Returns:
        One loss per seed of the distribution.
    """
    return rows["law"].set_index("seed")[form]


@trainings
def excess(rows: Rows, layers: int) -> "Series[float]":
    """Return the final loss of a network minus the loss that the source predicts.

    Networks predict single masked tokens of a random distribution, in which up to four tokens interact. The predicted
    loss is the lowest one that is possible with interactions of two tokens for one layer, three tokens for two layers,
    and four tokens for three layers.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        layers: Number of layers of the network, 1 to 3.

    Returns:
        One difference in nats per seed of the distribution.
    """
    table = _trainings_with(rows, layers)
    return table.loss - table[FORMS[layers]]


@trainings
def standing(rows: Rows, level: int) -> "Series[float]":
    """Return how long a network's loss stays on a plateau.

    The network has three layers, and the plateau is at the final loss of a shallower network. The loss decreases in
    steps with plateaus between them. The number of training steps on this plateau is divided by the number of training
    steps of the preceding decrease.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        level: Number of layers of the shallower network, 1 or 2.

    Returns:
        One ratio per seed of the distribution.
    """
    return _trainings_with(rows, 3)[f"stay_{level}"]


@trainings
def in_order(rows: Rows) -> Counts:
    """Count the networks in which layers learn from the last to the first.

    The networks have three layers. A layer begins to learn when its weights have moved by more than a tenth of their
    final distance from the initial values.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One success or failure per seed.
    """
    return _count_in_order(rows, 3, 2, 1)


@trainings
def last_first(rows: Rows, layers: int = 3) -> Counts:
    """Count the networks in which the last layer begins to learn before all other layers.

    A layer begins to learn when its weights have moved by more than a tenth of their final distance from the initial
    values.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        layers: Number of layers of the networks (default: 3).

    Returns:
        One success or failure per seed.
    """
    table = _trainings_with(rows, layers)
    others = table[[f"onset_{layer}" for layer in range(1, layers)]].min(axis=1)
    return counts_from_shares((table[f"onset_{layers}"] < others).astype(float), 1)


@trainings
def middle_before_first(rows: Rows) -> Counts:
    """Count the networks in which the middle layer learns before the first layer.

    The networks have three layers. A layer begins to learn when its weights have moved by more than a tenth of their
    final distance from the initial values.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One success or failure per seed.
    """
    return _count_in_order(rows, 2, 1)


@trainings
def pairs(rows: Rows, column: str) -> "Series[float]":
    """Return a measured value of single attention layers.

    They are trained on distributions in which only pairs of tokens interact. One layer has factored attention, whose
    weights do not depend on the tokens. The other has standard attention. Both predict single masked tokens.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        column: "factored" or "standard" for the final loss of this layer in nats, or "entropy" for the lowest possible
            loss. "couplings" or "similarities" for the correlation between learned and true matrices, between positions
            or between token values.

    Returns:
        One value per seed of the distribution.
    """
    return rows["pairs"].set_index("seed")[column]


@trainings
def pair_excess(rows: Rows, network: str) -> "Series[float]":
    """Return the loss of a single attention layer minus the lowest possible loss, in nats.

    The layer is trained to predict single masked tokens of a distribution in which only pairs of tokens interact. The
    lowest possible loss is the conditional entropy of a token.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        network: "factored" for attention weights that do not depend on the tokens, or "standard" for softmax attention.

    Returns:
        One difference per seed of the distribution.
    """
    table = rows["pairs"].set_index("seed")
    return table[network] - table.entropy


@large_trainings
def large_loss(rows: Rows, layers: int) -> "Series[float]":
    """Return the final held-out loss of a network on a large distribution.

    The distribution has the published size, and losses are in nats per token. The network is trained to predict single
    masked tokens from the others.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        layers: Number of layers of the network, 1 to 3.

    Returns:
        One loss per seed of the distribution.
    """
    table = rows.where("large-curve", layers=layers).sort_values("step")
    return table.groupby("seed").loss.last()


@large_trainings
def large_bound(rows: Rows, form: str) -> "Series[float]":
    """Return the held-out loss of a simple predictor on a large distribution.

    The loss is in nats per token. The predictor uses interactions of few tokens. It predicts single masked tokens of a
    random distribution of the published size.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        form: "two" or "three" for a trained product of functions of at most two or three tokens, or "four" for the
            conditional probabilities of the distribution itself.

    Returns:
        One loss per seed of the distribution.
    """
    return rows["large-law"].set_index("seed")[form]


@exact
def exchange_exponent(rows: Rows) -> float:
    """Return how the effect of exchanging two layers depends on the initial weights.

    Networks are initialized with weights of several scales. The relative change of the logits when the layers are
    exchanged is proportional to a power of the scale, and the fitted exponent of this power is returned.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    means = np.log(rows["exchange"].change).groupby(rows["exchange"].scale).mean()
    return float(np.polyfit(np.log(means.index), means, 1)[0])
