"""Statistics of the study: losses of networks, steps at which losses reach their minimum, distances of samplers."""

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
    """Return the names of the clones from the lowest order to the highest."""
    return [*map(factored_name, rows.config["layers"]), ENCODER]


def lowest_order_clone(rows: Rows) -> str:
    """Return the name of the clone of the lowest order."""
    return clone_names(rows)[0]


def saturation_step(curve: "Series[float]") -> float:
    """Return the first step, interpolated, at which a curve of losses by step is at its minimum (see `NEAR`).

    Raises `NoRows` if the loss never falls.
    """
    steps, losses = curve.index.to_numpy(float), curve.to_numpy(float)
    level = losses.min() + NEAR * (losses[0] - losses.min())
    place = int(np.argmax(losses <= level))
    if place == 0:
        raise NoRows("the loss never falls")
    before, after = losses[place - 1], losses[place]
    return float(steps[place - 1] + (steps[place] - steps[place - 1]) * (before - level) / (before - after))


def curves(rows: Rows, clone: str, sampler: str, sweeps: int | None = None) -> DataFrame:
    """Return losses on a clone by step (rows) and seed (columns), by default after the first number of sweeps."""
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
    """Return the loss of a network on held-out text, in nats per token."""
    table = rows.where("network", network=network)
    if table.empty:
        raise NoRows(f"no network {network}")
    return table.set_index("seed").loss


@trainings
def least_gain(rows: Rows) -> "Series[float]":
    """Return the smallest decrease of the loss from a factored network to the next deeper one."""
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    ordered = losses[clone_names(rows)[:-1]]
    if ordered.shape[1] < 2:
        raise NoRows("the gain needs networks of two depths")
    return -ordered.diff(axis=1).iloc[:, 1:].max(axis=1).dropna()


@trainings
def encoder_gain(rows: Rows) -> "Series[float]":
    """Return the loss of the deepest factored network minus the loss of the encoder."""
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    return (losses[clone_names(rows)[-2]] - losses[ENCODER]).dropna()


@followed
def saturation(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return the step at which the loss on a clone reaches its minimum."""
    return curves(rows, clone, sampler).apply(saturation_step)


@followed
def lowest_saturation(rows: Rows, sampler: str) -> "Series[float]":
    """Return the step at which the loss on the clone of the lowest order reaches its minimum."""
    return curves(rows, lowest_order_clone(rows), sampler).apply(saturation_step)


@followed
def later(rows: Rows, sampler: str) -> "Series[float]":
    """Return the ratio of the steps at which losses reach their minimum: all orders over the lowest order."""
    high, low = (curves(rows, clone, sampler) for clone in (ENCODER, lowest_order_clone(rows)))
    return high.apply(saturation_step) / low.apply(saturation_step)


@followed
def in_order(rows: Rows, sampler: str) -> Counts:
    """Return whether losses reach their minimum in the order of the clones."""
    times = DataFrame(
        {name: curves(rows, name, sampler).apply(saturation_step) for name in clone_names(rows)}
    )
    ordered = (times.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    return counts_from_shares(ordered, trials=1)


@followed
def early_spread(rows: Rows, sampler: str) -> "Series[float]":
    """Return the largest early difference of losses on clones, divided by the total fall of the loss on the text.

    Early steps are up to a third of the step at which the loss on the lowest order reaches its minimum. In Figure 1,
    this is a third of 60 epochs, and curves separate after 20.
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
    """Return the late fall of the loss on the clone of all orders minus the late fall on the lowest order.

    Falls are from three tenths of the steps (30,000 of 100,000 in Figure 4) to the smallest later loss.
    """
    high, low = (
        _late_falls(curves(rows, clone, sampler), 0.3) for clone in (ENCODER, lowest_order_clone(rows))
    )
    return high - low


@followed
def late_change(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return the loss on a clone at three tenths of the steps minus the loss at the last step."""
    late = _late_losses(curves(rows, clone, sampler), 0.3)
    return late.iloc[0] - late.iloc[-1]


@followed
def low_orders_later(rows: Rows, sampler: str) -> "Series[float]":
    """Return the ratio of the steps at which losses reach their minimum: all orders over the latest of the low orders.

    The low orders are the clones of all factored networks except the deepest.
    """
    *low, _, high = (curves(rows, clone, sampler).apply(saturation_step) for clone in clone_names(rows))
    if not low:
        raise NoRows("low orders need networks of two depths")
    return high / concat(low, axis=1).max(axis=1)


@followed
def late_share(rows: Rows, sampler: str) -> "Series[float]":
    """Return the share of the fall of the loss on the lowest order that occurs after a tenth of the steps.

    Both falls end at the smallest loss.
    """
    table = curves(rows, lowest_order_clone(rows), sampler)
    return _late_falls(table, 0.1) / (table.iloc[0] - table.min())


@followed
def between_sweeps(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Return the largest relative difference, over steps, of losses on a clone after the first and last sweeps."""
    sweeps = rows.config["sweeps"]
    first, last = (curves(rows, clone, sampler, number) for number in (sweeps[0], sweeps[-1]))
    return ((first - last).abs() / last).max()


def twin_curves(rows: Rows, order: int) -> DataFrame:
    """Return exact losses on the truncation to `order` bodies, by step and seed."""
    return _losses_by_step(rows.where("twin-loss", order=order), f"exact clone of {order} bodies")


@trainings
def twin_saturation(rows: Rows, order: int) -> "Series[float]":
    """Return the step at which the exact loss on the truncation to `order` bodies reaches its minimum."""
    return twin_curves(rows, order).apply(saturation_step)


@trainings
def twin_later(rows: Rows, high: int, low: int) -> "Series[float]":
    """Return the ratio of the steps at which exact losses reach their minimum: `high` bodies over `low` bodies."""
    return twin_curves(rows, high).apply(saturation_step) / twin_curves(rows, low).apply(saturation_step)


@distributions
def distance(rows: Rows, order: int, sampler: str) -> "Series[float]":
    """Return the total variation between a distribution of `order` bodies and the output of a sampler.

    The sampler uses the exact conditionals of the distribution.
    """
    return rows.where("twin-sampler", order=order, sampler=sampler).set_index("seed").distance
