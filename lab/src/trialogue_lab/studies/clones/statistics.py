"""Statistics of the study about clones of a text.

A clone is a set of sequences sampled from a network that was trained on the text. Its order is the largest number of
tokens that interact in this network. Factored networks with few layers give clones of low order, and a transformer
encoder gives the clone of all orders. Another transformer is trained on the text, and its loss on every clone is
measured during this training.
"""

import numpy as np
from pandas import DataFrame, Series, concat

from trialogue_lab.ledger import Counts, NoRows, Replication, Rows, counts_from_shares
from trialogue_lab.studies.clones.config import ENCODER, TEXT, factored_name

trainings = Replication("training", "seeds")
followed = Replication("training", "seeds", objects="the clones drawn")
distributions = Replication("draw", "seeds")

INTERPOLATED = (
    "losses at a share of the steps are interpolated between recorded steps, in the logarithm of steps"
)
"""Correction of the statistics of late losses, which had used the nearest recorded step"""
UP_TO_MINIMUM = "falls end at the smallest loss, so that a later increase of the loss is ignored"
"""Correction of the late gain, in which a larger increase of one loss had counted as a gain of the other"""

NEAR = 0.05
"""Share of the total fall of a loss within which it counts as being at its minimum"""


def clone_names(rows: Rows) -> list[str]:
    """Return the names of the clones, from the lowest to the highest order.

    A clone is a set of sequences sampled from a network. Its order is the largest number of tokens that interact in
    this network.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        Names of the factored networks by number of layers, for example "layers-2", and then "encoder".
    """
    return [*map(factored_name, rows.config["layers"]), ENCODER]


def saturation_step(curve: "Series[float]") -> float:
    """Return the training step at which a loss has almost reached its minimum.

    At this step, 95 % of the decrease from the initial to the smallest loss is complete. It is interpolated linearly
    between recorded steps.

    Args:
        curve: Losses in nats, indexed by the training step in ascending order.

    Raises:
        NoRows: If the first loss is the smallest one.
    """
    steps, losses = curve.index.to_numpy(float), curve.to_numpy(float)
    level = losses.min() + NEAR * (losses[0] - losses.min())
    place = int(np.argmax(losses <= level))
    if place == 0:
        raise NoRows("the loss never falls")
    before, after = losses[place - 1], losses[place]
    return float(steps[place - 1] + (steps[place] - steps[place - 1]) * (before - level) / (before - after))


def curves(rows: Rows, clone: str, sampler: str, sweeps: int | None = None) -> DataFrame:
    """Return the losses of transformers on one clone, measured during their training on a text.

    A clone is a set of sequences that a Markov chain samples from another network trained on the same text.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clone: Name of the network that the clone was sampled from, for example "layers-2". Use "text" for losses on the
            text itself.
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs". It is ignored for the text.
        sweeps: Number of sweeps before the clone was stored. A sweep is N single-token updates of a sequence of N
            tokens. None for the smallest recorded number.

    Returns:
        Losses in nats per token, with one row per training step and one column per training seed.

    Raises:
        NoRows: If no loss was measured on this clone.
    """
    if clone == TEXT:
        table = rows.where("loss", clone=TEXT)
    else:
        table = rows.where("loss", clone=clone, sampler=sampler)
        table = table[table.sweeps == (table.sweeps.min() if sweeps is None else sweeps)]
    return _losses_by_step(table, f"clone {clone} sampled by {sampler}")


def _losses_by_step(table: DataFrame, clone: str) -> DataFrame:
    """Return losses by step (rows) and seed (columns). Raises `NoRows` if there are none."""
    if table.empty:
        raise NoRows(f"no losses on the {clone}")
    return table.pivot(index="step", columns="seed", values="loss").sort_index()


@trainings
def network_loss(rows: Rows, network: str) -> "Series[float]":
    """Return the masked-token loss of a trained network on held-out text, in nats per token.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        network: "encoder", or the name of a factored network, for example "layers-2".

    Returns:
        One loss per training seed.

    Raises:
        NoRows: If this network was not measured.
    """
    table = rows.where("network", network=network)
    if table.empty:
        raise NoRows(f"no network {network}")
    return table.set_index("seed").loss


@trainings
def least_gain(rows: Rows) -> "Series[float]":
    """Return how much better each deeper factored network is, at least.

    Each factored network is compared with the next deeper one by its loss on held-out text, and the smallest decrease
    is returned.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One decrease in nats per token for each training seed. It is negative if one deeper network is worse.

    Raises:
        NoRows: If only one depth was measured.
    """
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    ordered = losses[clone_names(rows)[:-1]]
    if ordered.shape[1] < 2:
        raise NoRows("the gain needs networks of two depths")
    return -ordered.diff(axis=1).iloc[:, 1:].max(axis=1).dropna()


@trainings
def encoder_gain(rows: Rows) -> "Series[float]":
    """Return how much lower the encoder's loss is than the deepest factored network's.

    Losses are measured on held-out text.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One difference in nats per token for each training seed. It is positive if the encoder is better.
    """
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    return (losses[clone_names(rows)[-2]] - losses[ENCODER]).dropna()


@followed
def saturation(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return the training step at which the loss on one clone almost reaches its minimum.

    A transformer is trained on a text, and its losses are measured on clones. A clone is a set of sequences sampled
    from another network trained on the text. At the returned step, 95 % of the decrease to the smallest loss is
    complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clone: Name of the network that the clone was sampled from, for example "layers-2".
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs".

    Returns:
        One step per training seed, interpolated between recorded steps.
    """
    return curves(rows, clone, sampler).apply(saturation_step)


@followed
def lowest_saturation(rows: Rows, sampler: str) -> "Series[float]":
    """Return when the loss on the clone of lowest order almost reaches its minimum.

    A transformer is trained on a text, and its losses are measured on clones. The clone of lowest order is a set of
    sequences sampled from the shallowest factored network, in which only few tokens interact. At the returned step, 95
    % of the decrease to the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: Markov chain that sampled the sequences, "metropolis" or "gibbs".

    Returns:
        One step per training seed.
    """
    return curves(rows, clone_names(rows)[0], sampler).apply(saturation_step)


@followed
def later(rows: Rows, sampler: str) -> "Series[float]":
    """Compare when the losses on two clones almost reach their minimum.

    A transformer is trained on a text, and its losses are measured on clones. A clone is a set of sequences sampled
    from another network trained on the text. One clone comes from an encoder, in which all tokens interact. The other
    comes from the shallowest factored network, in which only few tokens interact. At each step, 95 % of the decrease to
    the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One ratio per training seed: step for the encoder's clone, divided by the step for the other one.
    """
    high, low = (curves(rows, clone, sampler) for clone in (ENCODER, clone_names(rows)[0]))
    return high.apply(saturation_step) / low.apply(saturation_step)


@followed
def in_order(rows: Rows, sampler: str) -> Counts:
    """Count the trainings in which losses reach their minimum in the expected order.

    A transformer is trained on a text, and its losses are measured on clones. A clone is a set of sequences sampled
    from another network trained on the text. Its order is the largest number of tokens that interact in this network. A
    training is a success if the loss on each clone of higher order reaches its minimum strictly later.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One success or failure per training seed.
    """
    ends = DataFrame({name: curves(rows, name, sampler).apply(saturation_step) for name in clone_names(rows)})
    ordered = (ends.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    return counts_from_shares(ordered, trials=1)


@followed
def early_spread(rows: Rows, sampler: str) -> "Series[float]":
    """Return how much the losses on the clones differ early in the training.

    A transformer is trained on a text, and its losses are measured on clones. A clone is a set of sequences sampled
    from another network trained on the text. At each early step, the smallest loss over clones is subtracted from the
    largest. The maximum over these steps is divided by the total decrease of the loss on the text.

    Early steps end at a third of the step at which the loss on the clone with the fewest interacting tokens has almost
    reached its minimum. In Figure 1 of the source, this minimum is reached after 60 epochs, and the losses separate
    after 20.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One ratio per training seed.
    """
    tables = {name: curves(rows, name, sampler) for name in clone_names(rows)}
    text = curves(rows, TEXT, sampler)
    spreads = {}
    for seed in text:
        until = saturation_step(tables[clone_names(rows)[0]][seed]) / 3
        losses = DataFrame({name: table[seed] for name, table in tables.items()})
        early = losses[losses.index <= until]
        spread = (early.max(axis=1) - early.min(axis=1)).max()
        spreads[seed] = spread / (text[seed].iloc[0] - text[seed].iloc[-1])
    return Series(spreads)


def _late_losses(table: DataFrame, share: float) -> DataFrame:
    """Return the losses at a share of the training steps, and at all later steps.

    The first loss is interpolated in the logarithm of the step. If the share is before step 1, the losses of step 1 are
    used.
    """
    table = table[table.index > 0]
    steps, step = table.index.to_numpy(float), share * table.index[-1]
    between = {seed: np.interp(np.log(step), np.log(steps), table[seed]) for seed in table}
    return concat([DataFrame(between, index=[step]), table[steps > step]])


def _late_falls(table: DataFrame, share: float) -> "Series[float]":
    """Return how much a loss decreases late in the training, by seed.

    The decrease is from a share of the training steps to the later minimum.
    """
    late = _late_losses(table, share)
    return late.iloc[0] - late.min()


@followed
def late_gain(rows: Rows, sampler: str) -> "Series[float]":
    """Compare how much the losses on two clones still decrease late in the training.

    A transformer is trained on a text, and its losses are measured on clones. A clone is a set of sequences sampled
    from another network trained on the text. One clone comes from an encoder, in which all tokens interact. The other
    comes from the shallowest factored network, in which only few tokens interact. The late decrease is the loss after
    30 % of the steps minus the smallest later loss. In Figure 4 of the source, this is the decrease after step 30,000
    of 100,000.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One difference in nats per training seed: late decrease for the encoder's clone, minus that for the other one.
    """
    high, low = (_late_falls(curves(rows, clone, sampler), 0.3) for clone in (ENCODER, clone_names(rows)[0]))
    return high - low


@followed
def late_change(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return how much the loss on a clone decreases late in the training.

    The decrease is the loss after 30 % of the training steps minus the loss after the last step. A transformer is
    trained on a text, and its losses are measured on clones. A clone is a set of sequences sampled from another network
    trained on the text.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clone: Name of the network that the clone was sampled from, for example "layers-2".
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs".

    Returns:
        One difference in nats per training seed. It is negative if the loss increases.
    """
    late = _late_losses(curves(rows, clone, sampler), 0.3)
    return late.iloc[0] - late.iloc[-1]


@followed
def low_orders_later(rows: Rows, sampler: str) -> "Series[float]":
    """Compare when the losses on several clones almost reach their minimum.

    A transformer is trained on a text, and its losses are measured on clones. A clone is a set of sequences sampled
    from another network trained on the text. Clones of low order come from all factored networks except the deepest, in
    which only few tokens interact. All tokens interact in the encoder. At each step, 95 % of the decrease to the
    smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One ratio per training seed: step for the encoder's clone, divided by the latest step for clones of low order.

    Raises:
        NoRows: If only one depth of factored networks was measured.
    """
    *low, _, high = (curves(rows, clone, sampler).apply(saturation_step) for clone in clone_names(rows))
    if not low:
        raise NoRows("low orders need networks of two depths")
    return high / concat(low, axis=1).max(axis=1)


@followed
def late_share(rows: Rows, sampler: str) -> "Series[float]":
    """Return the share of a loss's decrease that comes after 10 % of the training.

    A transformer is trained on a text. Its loss is measured on a clone, which is a set of sequences sampled from the
    shallowest factored network. Decreases end at the smallest loss.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs".

    Returns:
        One share per training seed.
    """
    table = curves(rows, clone_names(rows)[0], sampler)
    return _late_falls(table, 0.1) / (table.iloc[0] - table.min())


@followed
def between_sweeps(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return how much losses on a clone depend on the length of its Markov chain.

    A transformer is trained on a text, and its losses are measured on clones. A clone is a set of sequences that a
    Markov chain samples from another network. It is stored after several numbers of sweeps. A sweep is N single-token
    updates of a sequence of N tokens. Losses on the clones after the first and after the last number of sweeps are
    compared at each training step.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clone: Name of the network that the clone was sampled from, for example "layers-2".
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs".

    Returns:
        Largest absolute difference over steps, relative to the later loss, per training seed.
    """
    sweeps = rows.config["sweeps"]
    first, last = (curves(rows, clone, sampler, number) for number in (sweeps[0], sweeps[-1]))
    return ((first - last).abs() / last).max()


def twin_curves(rows: Rows, order: int) -> DataFrame:
    """Return exact losses of an encoder that learns a small known distribution.

    The known distribution has interactions of up to four tokens. Losses are expectations under a copy of the
    distribution, from which interactions of more than `order` tokens are removed.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        order: Largest number of interacting tokens that are kept.

    Returns:
        Losses in nats per token, with one row per training step and one column per seed.
    """
    return _losses_by_step(rows.where("twin-loss", order=order), f"exact clone of {order} bodies")


@trainings
def twin_saturation(rows: Rows, order: int) -> "Series[float]":
    """Return the training step at which an exact loss has almost reached its minimum.

    An encoder is trained on samples of a small known distribution with interactions of up to four tokens. The loss is
    an expectation under a copy of the distribution, from which interactions of more than `order` tokens are removed. At
    the returned step, 95 % of the decrease to the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        order: Largest number of interacting tokens that are kept.

    Returns:
        One step per seed, interpolated between recorded steps.
    """
    return twin_curves(rows, order).apply(saturation_step)


@trainings
def twin_later(rows: Rows, high: int, low: int) -> "Series[float]":
    """Compare the training steps at which two exact losses have almost reached their minimum.

    An encoder is trained on samples of a small known distribution with interactions of up to four tokens. The losses
    are expectations under two copies of the distribution, from which interactions of more than `high` or `low` tokens
    are removed. At each step, 95 % of the decrease to the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        high: Number of interacting tokens that are kept in one copy.
        low: Smaller number of interacting tokens that are kept in the other copy.

    Returns:
        One ratio per seed: step for `high`, divided by step for `low`.
    """
    return twin_curves(rows, high).apply(saturation_step) / twin_curves(rows, low).apply(saturation_step)


@distributions
def distance(rows: Rows, order: int, sampler: str) -> "Series[float]":
    """Return the distance of a Markov chain's stationary distribution from a known distribution.

    The distance is the total variation. The Markov chain updates single tokens with the exact conditional probabilities
    of the known distribution.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        order: Largest number of interacting tokens in the known random distribution.
        sampler: Markov chain, "metropolis" or "gibbs".

    Returns:
        One distance per seed of the distribution.
    """
    return rows.where("twin-sampler", order=order, sampler=sampler).set_index("seed").distance
