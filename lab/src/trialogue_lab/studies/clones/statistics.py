"""Statistics of the study about clones of a text.

A clone is a set of sequences that are sampled from a network trained on the text. Its order is the highest number of
tokens that interact in the network's energy. Factored networks with few layers give clones of low order, and a trained
encoder gives the clone of all orders. A second encoder, the followed encoder, is trained on the text, and its
masked-token loss is measured on every clone during this training.
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
    """Return the names of the clones, in ascending order of the interactions that they contain.

    A clone is a set of sequences that are sampled from a network trained on a text. It contains interactions of few
    tokens if the network is a factored network with few layers, and of all orders if the network is a transformer
    encoder.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        Names of the factored networks by number of layers, for example "layers-2", followed by "encoder".
    """
    return [*map(factored_name, rows.config["layers"]), ENCODER]


def lowest_order_clone(rows: Rows) -> str:
    """Return the name of the clone with the lowest interaction order.

    A clone is a set of sequences that are sampled from a network trained on a text. This one is sampled from the
    factored network with the fewest layers, and contains only interactions of few tokens.
    """
    return clone_names(rows)[0]


def saturation_step(curve: "Series[float]") -> float:
    """Return the training step at which a loss has almost reached its minimum.

    This is the first step at which 95 % of the decrease from the initial loss to the smallest loss is complete. It is
    linearly interpolated between recorded steps.

    Args:
        curve: Losses in nats, indexed by the training step in ascending order.

    Returns:
        The interpolated training step.

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
    """Return the losses of transformers during their training, measured on one clone of the training text.

    A clone is a set of sequences that are sampled by a Markov chain from another network trained on the same text.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clone: Name of the network that the clone was sampled from, for example "layers-2". "text" selects losses on the
            text itself.
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clone. It is ignored for the text.
        sweeps: Number of sweeps before the clone was stored. A sweep consists of N single-token steps for sequences of
            N tokens. None for the smallest recorded number.

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
    """Return the smallest decrease of the held-out loss from one factored network to the next deeper one.

    Factored networks with different numbers of layers are trained on the same text. Each network is compared with the
    next deeper one, and the smallest decrease over these comparisons is selected.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One decrease in nats per token for each training seed. It is negative if the loss increases once.

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
    """Return the held-out loss of the deepest factored network minus the held-out loss of the transformer encoder.

    Both networks are trained on the same text with the same seed.

    Args:
        rows: Measurements of a run, as one table per kind of row.

    Returns:
        One difference in nats per token for each training seed. It is positive if the encoder is better.
    """
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    return (losses[clone_names(rows)[-2]] - losses[ENCODER]).dropna()


@followed
def saturation(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return the training step at which the loss on one clone has almost reached its minimum.

    A transformer is trained on a text, and its loss is measured on a clone, a set of sequences sampled from another
    network trained on the text. At the returned step, 95 % of the decrease to the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clone: Name of the network that the clone was sampled from, for example "layers-2".
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clone.

    Returns:
        One step per training seed, interpolated between recorded steps.
    """
    return curves(rows, clone, sampler).apply(saturation_step)


@followed
def lowest_saturation(rows: Rows, sampler: str) -> "Series[float]":
    """Return the training step at which the loss on the lowest-order clone has almost reached its minimum.

    A transformer is trained on a text, and its loss is measured on sequences sampled from another network trained on
    the text. This network is factored and has the fewest layers, so that it represents only interactions of few tokens.
    At the returned step, 95 % of the decrease to the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the sequences.

    Returns:
        One step per training seed.
    """
    return curves(rows, lowest_order_clone(rows), sampler).apply(saturation_step)


@followed
def later(rows: Rows, sampler: str) -> "Series[float]":
    """Return the ratio of the steps at which the losses on two clones almost reach their minimum.

    A transformer is trained on a text, and its loss is measured on two clones, sets of sequences sampled from other
    networks trained on the text. The first is sampled from a transformer encoder and has interactions of all orders.
    The second is sampled from the shallowest factored network and has the lowest order. Each step is the one at which
    95 % of the decrease to the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clones.

    Returns:
        One ratio per training seed: step for all orders, divided by step for the lowest order.
    """
    high, low = (curves(rows, clone, sampler) for clone in (ENCODER, lowest_order_clone(rows)))
    return high.apply(saturation_step) / low.apply(saturation_step)


@followed
def in_order(rows: Rows, sampler: str) -> Counts:
    """Count the trainings in which losses reach their minimum in the order of the interactions.

    A transformer is trained on a text, and its losses are measured on clones, sets of sequences sampled from other
    networks trained on the text. A training counts as a success if the step at which 95 % of the decrease of the loss
    is complete increases strictly with the interaction order of the clone.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clones.

    Returns:
        One success or failure per training seed.
    """
    times = DataFrame(
        {name: curves(rows, name, sampler).apply(saturation_step) for name in clone_names(rows)}
    )
    ordered = (times.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    return counts_from_shares(ordered, trials=1)


@followed
def early_spread(rows: Rows, sampler: str) -> "Series[float]":
    """Return the largest early difference between losses on the clones, relative to the decrease on the text.

    A transformer is trained on a text, and its losses are measured on clones, sets of sequences sampled from other
    networks trained on the text. At each early step, the smallest loss over clones is subtracted from the largest. The
    maximum over steps is divided by the first loss on the text minus the last one.

    Early steps end at a third of the step at which the loss on the clone with the lowest interaction order has almost
    reached its minimum. In Figure 1 of the source, this minimum is reached after 60 epochs, and the losses separate
    after 20.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clones.

    Returns:
        One ratio per training seed.
    """
    tables = {name: curves(rows, name, sampler) for name in clone_names(rows)}
    text = curves(rows, TEXT, sampler)
    spreads = {}
    for seed in text:
        until = saturation_step(tables[lowest_order_clone(rows)][seed]) / 3
        losses = DataFrame({name: table[seed] for name, table in tables.items()})
        early = losses[losses.index <= until]
        spread = (early.max(axis=1) - early.min(axis=1)).max()
        spreads[seed] = spread / (text[seed].iloc[0] - text[seed].iloc[-1])
    return Series(spreads)


def _late_losses(table: DataFrame, share: float) -> DataFrame:
    """Return losses at a share of the steps, interpolated in the logarithm of steps, and at all later steps.

    If the share is before step 1, the losses of step 1 are used.
    """
    table = table[table.index > 0]
    steps, step = table.index.to_numpy(float), share * table.index[-1]
    between = {seed: np.interp(np.log(step), np.log(steps), table[seed]) for seed in table}
    return concat([DataFrame(between, index=[step]), table[steps > step]])


def _late_falls(table: DataFrame, share: float) -> "Series[float]":
    """Return the fall of a loss from a share of the steps to its later minimum, by seed."""
    late = _late_losses(table, share)
    return late.iloc[0] - late.min()


@followed
def late_gain(rows: Rows, sampler: str) -> "Series[float]":
    """Return how much more the loss decreases late in training on the clone of all orders than on the lowest order.

    A transformer is trained on a text, and its losses are measured on two clones, sets of sequences sampled from other
    networks trained on the text. One has interactions of all orders, the other has the lowest order. The late decrease
    of a loss is its value after 30 % of the training steps minus the smallest later value. Figure 4 of the source has
    100,000 steps, so that its late part starts at step 30,000.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clones.

    Returns:
        One difference in nats per training seed: late decrease for all orders, minus late decrease for the lowest
        order.
    """
    high, low = (
        _late_falls(curves(rows, clone, sampler), 0.3) for clone in (ENCODER, lowest_order_clone(rows))
    )
    return high - low


@followed
def late_change(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return the loss on a clone after 30 % of the training steps minus the loss after the last step.

    A transformer is trained on a text, and its loss is measured on a clone, a set of sequences sampled from another
    network trained on the text.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clone: Name of the network that the clone was sampled from, for example "layers-2".
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clone.

    Returns:
        One difference in nats per training seed. It is negative if the loss increases.
    """
    late = _late_losses(curves(rows, clone, sampler), 0.3)
    return late.iloc[0] - late.iloc[-1]


@followed
def low_orders_later(rows: Rows, sampler: str) -> "Series[float]":
    """Return how much later the loss on the all-order clone almost reaches its minimum than on low-order clones.

    A transformer is trained on a text, and its losses are measured on clones, sets of sequences sampled from other
    networks trained on the text. The clone of all orders is sampled from a transformer encoder. The clones of low
    orders are sampled from all factored networks except the deepest. A step is the one at which 95 % of the decrease of
    a loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clones.

    Returns:
        One ratio per training seed: step for all orders, divided by the latest step for the low orders.

    Raises:
        NoRows: If only one depth of factored networks was measured.
    """
    *low, _, high = (curves(rows, clone, sampler).apply(saturation_step) for clone in clone_names(rows))
    if not low:
        raise NoRows("low orders need networks of two depths")
    return high / concat(low, axis=1).max(axis=1)


@followed
def late_share(rows: Rows, sampler: str) -> "Series[float]":
    """Return the share of the decrease of a loss that happens after 10 % of the training steps.

    A transformer is trained on a text, and its loss is measured on the clone with the lowest interaction order, a set
    of sequences sampled from the shallowest factored network. The decrease after 10 % of the steps is divided by the
    decrease since the start. Both end at the smallest loss.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        sampler: "metropolis" or "gibbs", the Markov chain that sampled the clone.

    Returns:
        One share per training seed.
    """
    table = curves(rows, lowest_order_clone(rows), sampler)
    return _late_falls(table, 0.1) / (table.iloc[0] - table.min())


@followed
def between_sweeps(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return how much the losses on a clone depend on the length of the Markov chain that sampled it.

    A clone is a set of sequences that a Markov chain samples from a trained network. It is stored after several numbers
    of sweeps. A sweep consists of N single-token steps for sequences of N tokens. Losses on the clone after the first
    and after the last number are compared at each training step of a transformer that is trained on the text. The
    largest absolute difference, divided by the loss after the last number, is returned.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        clone: Name of the network that the clone was sampled from, for example "layers-2".
        sampler: "metropolis" or "gibbs", the Markov chain.

    Returns:
        One relative difference per training seed.
    """
    sweeps = rows.config["sweeps"]
    first, last = (curves(rows, clone, sampler, number) for number in (sweeps[0], sweeps[-1]))
    return ((first - last).abs() / last).max()


def twin_curves(rows: Rows, order: int) -> DataFrame:
    """Return exact losses of an encoder that is trained on a small known distribution with four-body interactions.

    The loss is an expectation over a truncated distribution, in which interactions of more than `order` tokens are
    removed.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        order: Largest number of interacting tokens in the truncated distribution.

    Returns:
        Losses in nats per token, with one row per training step and one column per seed.
    """
    return _losses_by_step(rows.where("twin-loss", order=order), f"exact clone of {order} bodies")


@trainings
def twin_saturation(rows: Rows, order: int) -> "Series[float]":
    """Return the training step at which the exact loss on a truncated distribution has almost reached its minimum.

    An encoder is trained on a small known distribution with four-body interactions. Its loss is an expectation over a
    truncated distribution, in which interactions of more than `order` tokens are removed. At the returned step, 95 % of
    the decrease to the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        order: Largest number of interacting tokens in the truncated distribution.

    Returns:
        One step per seed, interpolated between recorded steps.
    """
    return twin_curves(rows, order).apply(saturation_step)


@trainings
def twin_later(rows: Rows, high: int, low: int) -> "Series[float]":
    """Return the ratio of the steps at which exact losses on two truncated distributions almost reach minima.

    An encoder is trained on a small known distribution with four-body interactions. Its losses are expectations over
    two truncated distributions, in which interactions of more than `high` or `low` tokens are removed. A step is the
    one at which 95 % of the decrease to the smallest loss is complete.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        high: Largest number of interacting tokens in the distribution of higher order.
        low: Largest number of interacting tokens in the distribution of lower order.

    Returns:
        One ratio per seed: step for `high`, divided by step for `low`.
    """
    return twin_curves(rows, high).apply(saturation_step) / twin_curves(rows, low).apply(saturation_step)


@distributions
def distance(rows: Rows, order: int, sampler: str) -> "Series[float]":
    """Return the total variation distance from a known distribution to the stationary distribution of a chain.

    The Markov chain updates single tokens with their exact conditional distributions.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        order: Largest number of interacting tokens in the known random distribution.
        sampler: "metropolis" or "gibbs", the Markov chain.

    Returns:
        One distance per seed of the distribution.
    """
    return rows.where("twin-sampler", order=order, sampler=sampler).set_index("seed").distance
