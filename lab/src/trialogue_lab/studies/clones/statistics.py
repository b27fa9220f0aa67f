"""Quantities of the study: losses of networks, when losses on clones are at their lowest, how samplers differ."""

import numpy as np
from pandas import DataFrame, Series, concat

from trialogue_lab.ledger import NoRows, Replication, Rows
from trialogue_lab.ledger.claims.statistics import Counts
from trialogue_lab.studies.clones.config import ENCODER, TEXT, of_layers

trainings = Replication("training", "seeds")
followed = Replication("training", "seeds", objects="the clones drawn")
laws = Replication("draw", "seeds")

INTERPOLATED = "losses at a share of the steps are interpolated between looks, in the logarithm of steps"
"""Why quantities of late losses differ from what they were: they had been read at the nearest look."""
TO_THE_LEAST = "falls end at the least loss, so that a loss that rises again counts as no fall and as no rise"
"""Why the late gain differs from what it was: a loss that rose more had counted as a gain of the other."""

NEAR = 0.05
"""A loss is at its lowest within this share of what it has fallen by from the first step to its minimum."""


def clone_names(rows: Rows) -> list[str]:
    """The clones from the lowest order to the highest."""
    return [*map(of_layers, rows.config["layers"]), ENCODER]


def lowest(rows: Rows) -> str:
    """The clone of the lowest order."""
    return clone_names(rows)[0]


def saturated(curve: "Series[float]") -> float:
    """The first step, between those measured, at which a curve of losses by step is at its lowest: see `NEAR`."""
    steps, losses = curve.index.to_numpy(float), curve.to_numpy(float)
    level = losses.min() + NEAR * (losses[0] - losses.min())
    place = int(np.argmax(losses <= level))
    if place == 0:
        raise NoRows("the loss never falls")
    before, after = losses[place - 1], losses[place]
    return float(steps[place - 1] + (steps[place] - steps[place - 1]) * (before - level) / (before - after))


def curves(rows: Rows, clone: str, sampler: str, sweeps: int | None = None) -> DataFrame:
    """Losses on a clone, by step (rows) and seed (columns); by default those of the first number of sweeps."""
    if clone == TEXT:
        table = rows.where("loss", clone=TEXT)
    else:
        table = rows.where("loss", clone=clone, sampler=sampler)
        table = table[table.sweeps == (table.sweeps.min() if sweeps is None else sweeps)]
    if table.empty:
        raise NoRows(f"no losses on {clone} drawn by {sampler}")
    return table.pivot(index="step", columns="seed", values="loss").sort_index()


def _by_seed(table: DataFrame) -> "Series[float]":
    return Series({seed: saturated(table[seed]) for seed in table})


@trainings
def network_loss(rows: Rows, network: str) -> "Series[float]":
    """Loss of a network on held-out text, in nats per token."""
    table = rows.where("network", network=network)
    if table.empty:
        raise NoRows(f"no network {network}")
    return table.set_index("seed").loss


@trainings
def least_gain(rows: Rows) -> "Series[float]":
    """The least of what each factored network loses less than the next shallower one."""
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    ordered = losses[clone_names(rows)[:-1]]
    if ordered.shape[1] < 2:
        raise NoRows("one depth is no growth")
    return -ordered.diff(axis=1).iloc[:, 1:].max(axis=1).dropna()


@trainings
def encoder_gain(rows: Rows) -> "Series[float]":
    """How much less the encoder loses than the deepest factored network."""
    losses = rows["network"].pivot(index="seed", columns="network", values="loss")
    return (losses[clone_names(rows)[-2]] - losses[ENCODER]).dropna()


@followed
def saturation(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """The step at which the loss on a clone is at its lowest."""
    return _by_seed(curves(rows, clone, sampler))


@followed
def lowest_saturation(rows: Rows, sampler: str) -> "Series[float]":
    """The step at which the loss on the clone of the lowest order is at its lowest."""
    return _by_seed(curves(rows, lowest(rows), sampler))


@followed
def later(rows: Rows, sampler: str) -> "Series[float]":
    """By what factor later the loss on the clone of all orders is at its lowest than on that of the lowest."""
    high, low = (curves(rows, clone, sampler) for clone in (ENCODER, lowest(rows)))
    return _by_seed(high) / _by_seed(low)


@followed
def in_order(rows: Rows, sampler: str) -> Counts:
    """Whether losses are at their lowest the later, the higher the order of the clone, for all clones."""
    times = DataFrame({name: _by_seed(curves(rows, name, sampler)) for name in clone_names(rows)})
    ordered = (times.diff(axis=1).iloc[:, 1:] > 0).all(axis=1)
    return Counts(ordered.astype(float), ordered * 0 + 1)


@followed
def early_spread(rows: Rows, sampler: str) -> "Series[float]":
    """The most by which losses on clones differ, over what the loss on the text falls by, early on.

    That is up to a third of the step at which the clone of the lowest order is at its lowest: a third of 60 epochs in
    Figure 1, where curves part after 20.
    """
    tables = {name: curves(rows, name, sampler) for name in clone_names(rows)}
    text = curves(rows, TEXT, sampler)
    found = {}
    for seed in text:
        until = saturated(tables[lowest(rows)][seed]) / 3
        losses = DataFrame({name: table[seed] for name, table in tables.items()})
        early = losses[losses.index <= until]
        spread = (early.max(axis=1) - early.min(axis=1)).max()
        found[seed] = spread / (text[seed].iloc[0] - text[seed].iloc[-1])
    return Series(found)


def _after(table: DataFrame, share: float) -> DataFrame:
    """Losses from that share of the steps on: there between looks, in the logarithm of steps, and at all later looks.

    Before step 1, where training is too short for such a share, they are those of step 1.
    """
    looks = table[table.index > 0]
    steps, step = looks.index.to_numpy(float), share * table.index[-1]
    between = {seed: np.interp(np.log(step), np.log(steps), looks[seed]) for seed in looks}
    return concat([DataFrame(between, index=[step]), looks[steps > step]])


def _late_falls(table: DataFrame, share: float) -> "Series[float]":
    """How much a loss falls from that share of the steps to its least value after it, by seed."""
    late = _after(table, share)
    return late.iloc[0] - late.min()


@followed
def late_gain(rows: Rows, sampler: str) -> "Series[float]":
    """How much more the loss on the clone of all orders falls in the end than on that of the lowest.

    The end is from three tenths of the steps on: from 30,000 of 100,000 in Figure 4. Falls end at the least loss.
    """
    high, low = (_late_falls(curves(rows, clone, sampler), 0.3) for clone in (ENCODER, lowest(rows)))
    return high - low


@followed
def late_change(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """Loss on a clone at three tenths of the steps minus the loss at the last step: negative if the loss rises."""
    late = _after(curves(rows, clone, sampler), 0.3)
    return late.iloc[0] - late.iloc[-1]


@followed
def low_orders_later(rows: Rows, sampler: str) -> "Series[float]":
    """Ratio of the steps at which losses are at their lowest: all orders over the latest of the low orders.

    The low orders are the clones of all factored networks but the deepest.
    """
    *low, _, high = (_by_seed(curves(rows, clone, sampler)) for clone in clone_names(rows))
    if not low:
        raise NoRows("one depth has no low order")
    return high / concat(low, axis=1).max(axis=1)


@followed
def late_share(rows: Rows, sampler: str) -> "Series[float]":
    """The share of what the loss on the lowest clone falls by that comes after a tenth of the steps.

    Either fall ends where the loss is least: that it rises again takes nothing back.
    """
    table = curves(rows, lowest(rows), sampler)
    late = _after(table, 0.1)
    return (late.iloc[0] - late.min()) / (table.iloc[0] - table.min())


@followed
def between_sweeps(rows: Rows, clone: str, sampler: str) -> "Series[float]":
    """The largest relative difference, over steps, of the losses on a clone after the first and the last sweeps."""
    sweeps = rows.config["sweeps"]
    first, last = (curves(rows, clone, sampler, number) for number in (sweeps[0], sweeps[-1]))
    return ((first - last).abs() / last).max()


def twin_curves(rows: Rows, order: int) -> DataFrame:
    """Exact losses on the law's part of at most so many bodies, by step and seed."""
    table = rows.where("twin-loss", order=order)
    if table.empty:
        raise NoRows(f"no exact clone of {order} bodies")
    return table.pivot(index="step", columns="seed", values="loss").sort_index()


@trainings
def twin_saturation(rows: Rows, order: int) -> "Series[float]":
    """The step at which the exact loss on the law's part of at most so many bodies is at its lowest."""
    return _by_seed(twin_curves(rows, order))


@trainings
def twin_least(rows: Rows, order: int) -> "Series[float]":
    """That lowest loss, over the entropy of a site given the others, which no network goes below."""
    entropy = rows.where("twin-law", order=order).set_index("seed").entropy
    return twin_curves(rows, order).min() / entropy


@trainings
def twin_later(rows: Rows, high: int, low: int) -> "Series[float]":
    """By what factor later it is at its lowest on that of `high` bodies than on that of `low` ones."""
    return _by_seed(twin_curves(rows, high)) / _by_seed(twin_curves(rows, low))


@laws
def distance(rows: Rows, order: int, sampler: str) -> "Series[float]":
    """Total variation between a law of exactly so many bodies and what a sampler makes of its conditionals."""
    return rows.where("twin-sampler", order=order, sampler=sampler).set_index("seed").distance
