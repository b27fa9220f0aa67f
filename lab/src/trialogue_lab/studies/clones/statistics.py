"""Statistics of the study about clones of a text.

A clone is a set of sequences sampled from a network that was trained on the text. Its order is the largest number of
tokens that interact in this network. Networks with few layers of factored attention give clones of low order. A BERT
encoder gives the clone of all orders.

Another transformer, the followed network, is trained on the text, and its loss on every clone is recorded. A loss stops
falling at the training step at which 95 % of its total decrease is complete. All statistics of losses use these
definitions.
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
"""Largest distance of a loss from its minimum at which it counts as minimal, as a fraction of its total decrease"""


def list_clones(rows: Rows) -> list[str]:
    """Return the names of all networks from which clones were sampled.

    A clone is a set of sequences sampled from a network that was trained on the text.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        Names of networks with factored attention by number of layers, then "encoder". Example: ["layers-1", "layers-2",
        "encoder"].
    """
    return [*map(factored_name, rows.config["layers"]), ENCODER]


def find_saturation_step(curve: "Series[float]") -> float:
    """Find the training step at which a loss has completed 95 % of its total decrease.

    The total decrease is the first loss minus the smallest loss. The step is interpolated linearly between recorded
    steps.

    Args:
        curve: Losses in nats, indexed by training step in ascending order.

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


def select_loss_curves(rows: Rows, clone: str, sampler: str, sweeps: int | None = None) -> DataFrame:
    """Select the losses of the followed networks on one clone, by training step.

    A clone is a set of sequences sampled from another network that was trained on the same text.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        clone: Name of the network from which the sequences were sampled, for example "layers-2". Use "text" for losses
            on the text itself.
        sampler: Markov chain that sampled the sequences, "metropolis" or "gibbs". It is ignored for "text".
        sweeps: Number of sweeps of the Markov chain. A sweep consists of N single-token updates of a sequence of N
            tokens. None selects the smallest recorded number.

    Returns:
        Losses in nats per token, with one row per training step and one column per training seed.

    Raises:
        NoRows: If no loss was recorded on these sequences.
    """
    if clone == TEXT:
        table = rows.where("loss", clone=TEXT)
    else:
        table = rows.where("loss", clone=clone, sampler=sampler)
        table = table[table.sweeps == (table.sweeps.min() if sweeps is None else sweeps)]
    return _losses_by_step(table, f"clone {clone} sampled by {sampler}")


def _losses_by_step(table: DataFrame, clone: str) -> DataFrame:
    """Return losses by training step (rows) and seed (columns). Raises `NoRows` if the table is empty."""
    if table.empty:
        raise NoRows(f"no losses on the {clone}")
    return table.pivot(index="step", columns="seed", values="loss").sort_index()


@trainings
def network_loss(rows: Rows, network: str) -> "Series[float]":
    """Return the loss of a trained network on masked tokens of held-out text, in nats per token.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        network: "encoder" for a BERT, or the name of a network with factored attention, for example "layers-2".

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
    """Return the smallest decrease of the held-out loss from one network to a deeper one.

    The attention weights of the networks depend on positions only (factored attention). Networks are sorted by their
    number of layers, and each one is compared with the next.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One difference in nats per token for each training seed. A negative number means that some deeper network is
        worse.

    Raises:
        NoRows: If only one depth was measured.
    """
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    ordered = losses[list_clones(rows)[:-1]]
    if ordered.shape[1] < 2:
        raise NoRows("the gain needs networks of two depths")
    return -ordered.diff(axis=1).iloc[:, 1:].max(axis=1).dropna()


@trainings
def encoder_gain(rows: Rows) -> "Series[float]":
    """Return the held-out loss of the deepest factored network minus that of the encoder, a BERT.

    In a factored network, attention weights depend on positions only and not on tokens.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One difference in nats per token for each training seed. It is positive if the encoder is better.
    """
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    return (losses[list_clones(rows)[-2]] - losses[ENCODER]).dropna()


@followed
def saturation(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return the training step at which the loss of an encoder on one clone of its text stops falling.

    A clone is a set of sequences sampled from another network that was trained on the same text. At the returned step,
    95 % of the total decrease of the loss is complete.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        clone: Name of the network from which the clone was sampled, for example "layers-2".
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs".

    Returns:
        One step per training seed, interpolated between recorded steps.
    """
    return select_loss_curves(rows, clone, sampler).apply(find_saturation_step)


@followed
def lowest_saturation(rows: Rows, sampler: str) -> "Series[float]":
    """Return the training step at which the loss of an encoder on the simplest clone of its text stops falling.

    A clone is a set of sequences sampled from another network that was trained on the same text. The simplest clone
    comes from the network with the fewest layers, in which few tokens interact. At the returned step, 95 % of the total
    decrease of the loss is complete.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs".

    Returns:
        One step per training seed.
    """
    return select_loss_curves(rows, list_clones(rows)[0], sampler).apply(find_saturation_step)


@followed
def later(rows: Rows, sampler: str) -> "Series[float]":
    """Return how much later an encoder learns the most complex clone of its text than the simplest one.

        ratio = (step at which the loss on the most complex clone stops falling) / (this step for the simplest clone)

    A clone is a set of sequences sampled from another network that was trained on the same text. The most complex clone
    comes from a BERT, in which all tokens interact, and the simplest one from the network with the fewest layers.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One ratio per training seed. It exceeds 1 if the loss on the most complex clone stops falling later.
    """
    high, low = (select_loss_curves(rows, clone, sampler) for clone in (ENCODER, list_clones(rows)[0]))
    return high.apply(find_saturation_step) / low.apply(find_saturation_step)


@followed
def in_order(rows: Rows, sampler: str) -> Counts:
    """Count the trainings in which the losses on clones of the text stop falling in the order of complexity.

    A clone is a set of sequences sampled from another network that was trained on the same text. Its complexity is the
    number of tokens that interact in this network. The simplest clone must come first. Two losses that stop falling at
    the same step count as a failure.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One success or failure per training seed.
    """
    ends = DataFrame(
        {
            name: select_loss_curves(rows, name, sampler).apply(find_saturation_step)
            for name in list_clones(rows)
        }
    )
    ordered = (ends.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    return counts_from_shares(ordered, trials=1)


@followed
def early_spread(rows: Rows, sampler: str) -> "Series[float]":
    """Return the largest difference between the losses on two clones of the text early in the training, as a ratio.

        ratio = max over early steps of (largest loss - smallest loss) / (total decrease of the loss on the text)

    A clone is a set of sequences sampled from another network that was trained on the same text. Early steps are the
    first third of the steps until the loss on the simplest clone stops falling.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One ratio per training seed.
    """
    tables = {name: select_loss_curves(rows, name, sampler) for name in list_clones(rows)}
    text = select_loss_curves(rows, TEXT, sampler)
    spreads = {}
    for seed in text:
        until = find_saturation_step(tables[list_clones(rows)[0]][seed]) / 3
        losses = DataFrame({name: table[seed] for name, table in tables.items()})
        early = losses[losses.index <= until]
        spread = (early.max(axis=1) - early.min(axis=1)).max()
        spreads[seed] = spread / (text[seed].iloc[0] - text[seed].iloc[-1])
    return Series(spreads)


def _select_late_losses(table: DataFrame, share: float) -> DataFrame:
    """Return the losses after a fraction `share` of the training steps, and at all later recorded steps.

    The first loss is interpolated in the logarithm of the step, and not before step 1.
    """
    table = table[table.index > 0]
    steps, step = table.index.to_numpy(float), share * table.index[-1]
    between = {seed: np.interp(np.log(step), np.log(steps), table[seed]) for seed in table}
    return concat([DataFrame(between, index=[step]), table[steps > step]])


def _compute_late_decreases(table: DataFrame, share: float) -> "Series[float]":
    """Return, for each seed, the loss after a fraction `share` of the steps minus the smallest later loss."""
    late = _select_late_losses(table, share)
    return late.iloc[0] - late.min()


@followed
def late_gain(rows: Rows, sampler: str) -> "Series[float]":
    """Return how much more the loss on the most complex clone falls late in training than on the simplest one.

        difference = (late decrease for the most complex clone) - (late decrease for the simplest clone)
        late decrease = (loss after 30 % of the training steps) - (smallest later loss)

    A clone is a set of sequences sampled from another network that was trained on the same text. The most complex clone
    comes from a BERT, and the simplest one from the network with the fewest layers.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One difference in nats per token for each training seed.
    """
    high, low = (
        _compute_late_decreases(select_loss_curves(rows, clone, sampler), 0.3)
        for clone in (ENCODER, list_clones(rows)[0])
    )
    return high - low


@followed
def late_change(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return the decrease of the loss on one clone of the text in the last 70 % of the training.

        decrease = (loss after 30 % of the training steps) - (loss after the last step)

    A clone is a set of sequences sampled from another network that was trained on the same text.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        clone: Name of the network from which the clone was sampled, for example "layers-2".
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs".

    Returns:
        One decrease in nats per token for each training seed. It is negative if the loss increases.
    """
    late = _select_late_losses(select_loss_curves(rows, clone, sampler), 0.3)
    return late.iloc[0] - late.iloc[-1]


@followed
def low_orders_later(rows: Rows, sampler: str) -> "Series[float]":
    """Return how much later an encoder learns the most complex clone of its text than all simple ones.

        ratio = (step at which the loss on the most complex clone stops falling) / (latest such step of a simple clone)

    A clone is a set of sequences sampled from another network that was trained on the same text. The most complex clone
    comes from a BERT. The simple clones come from the networks with factored attention, except the deepest one.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Markov chain that sampled the clones, "metropolis" or "gibbs".

    Returns:
        One ratio per training seed. It exceeds 1 if the loss on the most complex clone stops falling last.

    Raises:
        NoRows: If only one depth of factored networks was measured.
    """
    *low, _, high = (
        select_loss_curves(rows, clone, sampler).apply(find_saturation_step) for clone in list_clones(rows)
    )
    if not low:
        raise NoRows("low orders need networks of two depths")
    return high / concat(low, axis=1).max(axis=1)


@followed
def late_share(rows: Rows, sampler: str) -> "Series[float]":
    """Return the share of the decrease of the loss on the simplest clone that follows after 10 % of the training.

    A clone is a set of sequences sampled from another network that was trained on the same text. The simplest clone
    comes from the network with the fewest layers. The decrease ends at the smallest loss.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sampler: Markov chain that sampled the sequences, "metropolis" or "gibbs".

    Returns:
        One fraction per training seed.
    """
    table = select_loss_curves(rows, list_clones(rows)[0], sampler)
    return _compute_late_decreases(table, 0.1) / (table.iloc[0] - table.min())


@followed
def between_sweeps(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return how much the loss on a clone of the text changes if the clone is sampled by a longer Markov chain.

        change = max over training steps of |first - last| / last

    A clone is a set of sequences sampled from another network that was trained on the same text. `first` and `last` are
    the losses on sequences after the smallest and the largest number of sweeps. In a sweep, the chain updates as many
    single tokens as a sequence has.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        clone: Name of the network from which the clone was sampled, for example "layers-2".
        sampler: Markov chain that sampled the clone, "metropolis" or "gibbs".

    Returns:
        One relative change per training seed.
    """
    sweeps = rows.config["sweeps"]
    first, last = (select_loss_curves(rows, clone, sampler, number) for number in (sweeps[0], sweeps[-1]))
    return ((first - last).abs() / last).max()


def select_twin_curves(rows: Rows, order: int) -> DataFrame:
    """Select the exact losses of an encoder that is trained on a small known distribution, by training step.

    The distribution has interactions of up to four tokens. The loss is the expectation under a simplified copy (clone)
    of this distribution, without the interactions of more than `order` tokens.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        order: Largest number of interacting tokens in the simplified copy.

    Returns:
        Losses in nats per token, with one row per training step and one column per seed.
    """
    return _losses_by_step(rows.where("twin-loss", order=order), f"exact clone of {order} bodies")


@trainings
def twin_saturation(rows: Rows, order: int) -> "Series[float]":
    """Return the training step at which the exact loss of an encoder on a clone of a known distribution stops falling.

    The known distribution has interactions of up to four tokens. Its clone lacks the interactions of more than `order`
    tokens. At the returned step, 95 % of the total decrease of the loss is complete.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        order: Largest number of interacting tokens in the simplified copy.

    Returns:
        One step per seed, interpolated between recorded steps.
    """
    return select_twin_curves(rows, order).apply(find_saturation_step)


@trainings
def twin_later(rows: Rows, high: int, low: int) -> "Series[float]":
    """Return how much later an encoder learns a complex clone of a known distribution than a simple one.

        ratio = (step at which the loss on the clone of order `high` stops falling) / (this step for order `low`)

    The known distribution has interactions of up to four tokens. A clone of order k lacks the interactions of more than
    k tokens. Losses are exact expectations.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        high: Order of the loss in the numerator.
        low: Order of the loss in the denominator, smaller than `high`.

    Returns:
        One ratio per seed.
    """
    return select_twin_curves(rows, high).apply(find_saturation_step) / select_twin_curves(rows, low).apply(
        find_saturation_step
    )


@distributions
def distance(rows: Rows, order: int, sampler: str) -> "Series[float]":
    """Return the distance of a Markov chain's stationary distribution from the distribution that it should sample.

    The latter is a small known distribution. The chain updates single tokens with its exact conditional probabilities.
    The distance is the total variation, and is zero if the chain is correct.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        order: Largest number of interacting tokens in the known distribution, which is random.
        sampler: Name of the Markov chain, for example "metropolis" or "gibbs".

    Returns:
        One distance per seed of the distribution.
    """
    return rows.where("twin-sampler", order=order, sampler=sampler).set_index("seed").distance
