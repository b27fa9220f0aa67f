"""Tables and figures of the study: networks, clones and their chains, an encoder on them, and the exact twin."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.generation.cloning.samplers import SAMPLERS
from trialogue_lab.ledger import COLORS, QUIET, Cells, Rows, figure, finish, panels, result_table, spread
from trialogue_lab.studies.clones import statistics as stats
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, PUBLISHED, TEXT

_DRAWN = {PUBLISHED: "raw scores, as published", GIBBS: "Gibbs"}


def label_of(rows: Rows, name: str) -> str:
    """Return what a clone is called in tables and figures."""
    if name in (ENCODER, TEXT):
        return {ENCODER: "encoder: all orders", TEXT: "the text itself"}[name]
    order = rows.where("network", network=name).order.iloc[0]
    orders = "all orders" if np.isnan(order) else f"order {order:.0f}"
    return f"{name.removeprefix('layers-')} factored: {orders}"


def _drawn_clones(rows: Rows) -> DataFrame:
    """Return the rows of the clones that were drawn, labelled by network, sampler and sweeps."""
    table = rows["clone"]
    names = zip(table.clone, table.sampler, table.sweeps, strict=True)
    labels = [f"{label_of(rows, clone)}, {sampler}, {sweeps} sweeps" for clone, sampler, sweeps in names]
    return table.set_axis(labels, axis=0)


@result_table(
    "Networks on held-out text",
    "Figure 3a",
    rows_are="network",
    note="Nats per token, each masked by itself; ± is the deviation over trainings.",
)
def _networks(rows: Rows) -> Cells:
    return {label_of(rows, name): {"loss": stats.network_loss(name)} for name in stats.clone_names(rows)}


@result_table(
    "Chains that clones are drawn by",
    "Figure 3b and section A.3",
    rows_are="clone",
    note="acceptance: share of updates that changed their token. ESS, R-hat and drift (± standard error) are of "
    "the energy after the first half of the sweeps. own loss: of the network on its own clone, in nats per token; "
    "below its loss on held-out text where the clone is sharper than the text. token entropy: of the tokens of the "
    "clone, in nats.",
)
def chains_table(rows: Rows) -> DataFrame:
    """Return what the chains of every clone did."""
    columns = {
        "acceptance": "acceptance",
        "effective_sample_size": "ESS",
        "r_hat": "R-hat",
        "drift": "drift",
        "drift_error": "±",
        "own_loss": "own loss",
        "token_entropy": "token entropy",
    }
    return _drawn_clones(rows)[list(columns)].astype(float).rename(columns=columns)


@result_table(
    "Sequences of the clones", "Table 1", rows_are="clone", note="All drawn from the same held-out sequence."
)
def _sequences(rows: Rows) -> DataFrame:
    return _drawn_clones(rows).example.str.split().str.join(" ").to_frame("a sequence")


@result_table(
    "Where losses on clones are at their lowest",
    "Figures 1 and 4",
    rows_are="clone",
    note="Steps until the loss of an encoder is within 5 % of its fall from its minimum; ± is the deviation over "
    "orders of the data, with the same initial weights.",
)
def saturations_table(rows: Rows) -> Cells:
    """Return the steps at which losses on clones are at their lowest, by sampler."""
    return {
        label_of(rows, name): {said: stats.saturation(name, sampler) for sampler, said in _DRAWN.items()}
        for name in stats.clone_names(rows)
    }


@result_table(
    "What samplers make of the exact conditionals of a law of k bodies",
    "not in the source",
    rows_are="sampler",
    note="Total variation between its invariant law and the law, exact; ± is the deviation over random laws.",
)
def _samplers(rows: Rows) -> Cells:
    orders = rows.config["twin_orders"]
    return {name: {f"{order} bodies": stats.distance(order, name) for order in orders} for name in SAMPLERS}


@result_table(
    "An encoder on exact clones of a known law",
    "not in the source",
    rows_are="part of the law",
    note="The lowest loss over the mean entropy of a site given the others, which is the least possible.",
)
def _twin(rows: Rows) -> Cells:
    return {
        f"at most {order} bodies": {
            "step of the lowest loss": stats.twin_saturation(order),
            "over the entropy": stats.twin_least(order),
        }
        for order in rows.config["twin_orders"]
    }


TABLES = (_networks, chains_table, saturations_table, _sequences, _samplers, _twin)


def _band(axes: Axes, table: DataFrame, color: str, label: str, style: str = "-") -> None:
    """Draw curves by step, one for each seed: their mean, and one standard deviation around it."""
    steps, mean, deviation = np.maximum(table.index, 0.7), table.mean(axis=1), table.std(axis=1)
    axes.plot(steps, mean, style, color=color, label=label)
    axes.fill_between(steps, mean - deviation, mean + deviation, color=color, alpha=0.15, lw=0)


@figure(
    "followed",
    "An encoder followed through its training on clones of growing order (first number of sweeps) and on "
    "the text itself; means over orders of the data, bands of one deviation; dotted lines where a loss is at its "
    "lowest. Levels differ between clones, which have entropies of their own: what counts is when a curve ends its "
    "fall.",
)
def followed_figure(rows: Rows) -> Drawing:
    """Draw losses through training on every clone, one panel for each sampler."""
    drawing, axes = panels(2, width=5.0, height=4.0)
    for panel, (sampler, said) in zip(axes, _DRAWN.items(), strict=True):
        for name, color in zip(stats.clone_names(rows), COLORS, strict=False):
            _band(panel, stats.curves(rows, name, sampler), color, label_of(rows, name))
            panel.axvline(stats.saturation(name, sampler)(rows).mean(), color=color, lw=0.8, ls=":")
        _band(panel, stats.curves(rows, TEXT, sampler), "black", label_of(rows, TEXT), "--")
        panel.set(xscale="log", xlabel="step", ylabel="loss (nats per token)")
        panel.set_title(f"Clones drawn by {said}")
    axes[0].legend()
    return drawing


@figure(
    "sweeps",
    "Left and middle: mean energy (the sum of raw scores, negative) of the sequences by sweep, from "
    "held-out text on; dotted lines where clones are taken. Right: losses of the followed encoder on clones taken "
    "at the first and at the last of them.",
)
def _sweeps(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.2, height=3.9)
    numbers = rows.config["sweeps"]
    first, last = numbers[0], numbers[-1]
    for panel, (sampler, said) in zip((left, middle), _DRAWN.items(), strict=True):
        for name, color in zip(stats.clone_names(rows), COLORS, strict=False):
            table = rows.where("energy", clone=name, sampler=sampler).sort_values("sweep")
            label = label_of(rows, name)
            panel.errorbar(table.sweep, table.energy, table.error, fmt="-", color=color, label=label)
        for number in numbers:
            panel.axvline(number, color=QUIET, lw=0.8, ls=":")
        finish(panel, f"Chains: {said}", xlabel="sweep", ylabel="mean energy")
    for name, color in zip(stats.clone_names(rows), COLORS, strict=False):
        for number, style in ((first, "-"), (last, "--")):
            table = stats.curves(rows, name, PUBLISHED, number)
            label = label_of(rows, name) if number == first else ""
            right.plot(np.maximum(table.index, 0.7), table.mean(axis=1), style, color=color, label=label)
    right.set(xscale="log", xlabel="step", ylabel="loss (nats per token)")
    right.set_title(f"Loss on clones of {first} (full) and {last} sweeps")
    left.legend()
    return drawing


@figure(
    "twin",
    "Left: a law of four-body energies and its exact parts of at most two and three bodies, of largest "
    "entropy; losses of an encoder that learns the law, on each of them, without sampling error. Dotted: the least "
    "possible; dashed: where a loss is at its lowest. Right: how far the invariant law of each sampler is from a "
    "law of exactly k bodies whose conditionals it is given.",
)
def _twin_figure(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=5.0, height=4.0)
    for order, color in zip(rows.config["twin_orders"], COLORS, strict=False):
        _band(left, stats.twin_curves(rows, order), color, f"at most {order} bodies")
        left.axhline(rows.where("twin-law", order=order).entropy.mean(), color=color, lw=0.8, ls=":")
        left.axvline(stats.twin_saturation(order)(rows).mean(), color=color, lw=0.8, ls="--")
    left.set(xscale="log", xlabel="step", ylabel="exact loss (nats per token)")
    finish(left, "An encoder that learns a four-body law, on its exact clones", legend=True)
    orders = rows.config["twin_orders"]
    for shift, (sampler, color) in enumerate(zip(SAMPLERS, COLORS, strict=False)):
        cells = [stats.distance(order, sampler) for order in orders]
        places = [place + 0.2 * (shift - 1.5) for place in range(len(orders))]
        spread(right, places, cells, rows, "o", color=color, label=sampler)
    right.set_xticks(range(len(orders)), [f"{order} bodies" for order in orders])
    right.set(ylabel="total variation to the law", ylim=(0, 1))
    finish(right, "Samplers given exact conditionals", legend=True)
    return drawing


FIGURES = (followed_figure, _sweeps, _twin_figure)
