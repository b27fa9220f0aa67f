"""Tables and figures of the study: networks, clones and their chains, an encoder on them, and the exact twin."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.display.figures import COLORS, QUIET, panels
from trialogue.generation.cloning.samplers import SAMPLERS
from trialogue_lab.ledger import Cells, Figure, ResultTable, Rows
from trialogue_lab.studies.clones.config import ENCODER, GIBBS, PUBLISHED, TEXT
from trialogue_lab.studies.clones.statistics import (
    clone_names,
    curves,
    distance,
    network_loss,
    saturation,
    twin_curves,
    twin_least,
    twin_saturation,
)

_DRAWN = {PUBLISHED: "raw scores, as published", GIBBS: "Gibbs"}


def told(rows: Rows, name: str) -> str:
    """What a clone is called in pictures."""
    if name in (ENCODER, TEXT):
        return {ENCODER: "encoder: all orders", TEXT: "the text itself"}[name]
    order = rows.where("network", network=name).order.iloc[0]
    return f"{name.removeprefix('layers-')} factored: " + (
        "all orders" if np.isnan(order) else f"order {order:.0f}"
    )


def networks(rows: Rows) -> Cells:
    """Losses of networks on held-out text."""
    return {told(rows, name): {"loss": network_loss(name)} for name in clone_names(rows)}


def chains(rows: Rows) -> DataFrame:
    """What the chains of every clone did."""
    columns = {
        "acceptance": "acceptance",
        "effective_sample_size": "ESS",
        "r_hat": "R-hat",
        "drift": "drift",
        "drift_error": "±",
        "own_loss": "own loss",
        "token_entropy": "token entropy",
    }
    table = rows["clone"]
    labels = [
        f"{told(rows, clone)}, {sampler}, {sweeps} sweeps"
        for clone, sampler, sweeps in zip(table.clone, table.sampler, table.sweeps, strict=True)
    ]
    chosen = table[list(columns)].astype(float).rename(columns=columns)
    return chosen.set_axis(labels, axis=0)


def _texts(rows: Rows) -> Cells:
    table = rows["clone"]
    return {
        f"{told(rows, clone)}, {sampler}, {sweeps} sweeps": {"a sequence": " ".join(example.split())}
        for clone, sampler, sweeps, example in zip(
            table.clone, table.sampler, table.sweeps, table.example, strict=True
        )
    }


def saturations(rows: Rows) -> Cells:
    """Where losses on clones are at their lowest, by sampler."""
    return {
        told(rows, name): {said: saturation(name, sampler) for sampler, said in _DRAWN.items()}
        for name in clone_names(rows)
    }


def _samplers(rows: Rows) -> Cells:
    orders = sorted(rows["twin-sampler"].order.unique().tolist())
    return {
        sampler: {f"{order} bodies": distance(order, sampler) for order in orders} for sampler in SAMPLERS
    }


def _twin(rows: Rows) -> Cells:
    orders = sorted(rows["twin-law"].order.unique().tolist())
    return {
        f"at most {order} bodies": {
            "step of the lowest loss": twin_saturation(order),
            "over the entropy": twin_least(order),
        }
        for order in orders
    }


TABLES = (
    ResultTable(
        title="Networks on held-out text",
        source="Figure 3a",
        cells=networks,
        rows_are="network",
        note="Nats per token, each masked by itself; ± is the deviation over trainings.",
    ),
    ResultTable(
        title="Chains that clones are drawn by",
        source="Figure 3b and section A.3",
        cells=chains,
        rows_are="clone",
        note="acceptance: share of updates that changed their token. ESS, R-hat and drift (± standard error) are of "
        "the energy after the first half of the sweeps. own loss: of the network on its own clone, in nats per token; "
        "below its loss on held-out text where the clone is sharper than the text. token entropy: of the tokens of the "
        "clone, in nats.",
    ),
    ResultTable(
        title="Where losses on clones are at their lowest",
        source="Figures 1 and 4",
        cells=saturations,
        rows_are="clone",
        note="Steps until the loss of an encoder is within 5 % of its fall from its minimum; ± is the deviation over "
        "orders of the data, with the same initial weights.",
    ),
    ResultTable(
        title="Sequences of the clones",
        source="Table 1",
        cells=_texts,
        rows_are="clone",
        note="All drawn from the same held-out sequence.",
    ),
    ResultTable(
        title="What samplers make of the exact conditionals of a law of k bodies",
        source="not in the source",
        cells=_samplers,
        rows_are="sampler",
        note="Total variation between its invariant law and the law, exact; ± is the deviation over random laws.",
    ),
    ResultTable(
        title="An encoder on exact clones of a known law",
        source="not in the source",
        cells=_twin,
        rows_are="part of the law",
        note="The lowest loss over the mean entropy of a site given the others, which is the least possible.",
    ),
)


def band(axes: Axes, table: DataFrame, color: str, label: str, style: str = "-") -> None:
    """Draw curves by step, one for each seed: their mean, and one standard deviation around it."""
    steps = np.maximum(table.index.to_numpy(float), 0.7)
    mean = table.mean(axis=1).to_numpy()
    axes.plot(steps, mean, style, color=color, label=label)
    if table.shape[1] > 1:
        deviation = table.std(axis=1).to_numpy()
        axes.fill_between(steps, mean - deviation, mean + deviation, color=color, alpha=0.15, lw=0)


def draw_losses(rows: Rows, samplers: Sequence[str]) -> Drawing:
    """Losses through training on every clone, one panel for each sampler."""
    drawing, axes = panels(len(samplers), width=5.0, height=4.0)
    for panel, sampler in zip(axes, samplers, strict=True):
        for name, color in zip(clone_names(rows), COLORS, strict=False):
            table = curves(rows, name, sampler)
            band(panel, table, color, told(rows, name))
            panel.axvline(saturation(name, sampler)(rows).mean(), color=color, lw=0.8, ls=":")
        band(panel, curves(rows, TEXT, sampler), "black", told(rows, TEXT), "--")
        panel.set(xscale="log", xlabel="step", ylabel="loss (nats per token)")
        panel.set_title(f"Clones drawn by {_DRAWN[sampler]}")
    axes[0].legend()
    return drawing


def _draw_followed(rows: Rows) -> Drawing:
    return draw_losses(rows, (PUBLISHED, GIBBS))


def _draw_sweeps(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=4.2, height=3.9)
    for panel, sampler in ((left, PUBLISHED), (middle, GIBBS)):
        for name, color in zip(clone_names(rows), COLORS, strict=False):
            table = rows.where("energy", clone=name, sampler=sampler).sort_values("sweep")
            panel.errorbar(
                table.sweep, table.energy, table.error, fmt="-", color=color, label=told(rows, name)
            )
        for number in rows.config["sweeps"]:
            panel.axvline(number, color=QUIET, lw=0.8, ls=":")
        panel.set(xlabel="sweep", ylabel="mean energy")
        panel.set_title(f"Chains: {_DRAWN[sampler]}")
    first, last = rows.config["sweeps"][0], rows.config["sweeps"][-1]
    for name, color in zip(clone_names(rows), COLORS, strict=False):
        for number, style in ((first, "-"), (last, "--")):
            table = curves(rows, name, PUBLISHED, number)
            label = told(rows, name) if number == first else ""
            right.plot(np.maximum(table.index, 0.7), table.mean(axis=1), style, color=color, label=label)
    right.set(xscale="log", xlabel="step", ylabel="loss (nats per token)")
    right.set_title(f"Loss on clones of {first} (full) and {last} sweeps")
    left.legend()
    return drawing


def _draw_twin(rows: Rows) -> Drawing:
    drawing, (left, right) = panels(2, width=5.0, height=4.0)
    for order, color in zip(rows.config["twin_orders"], COLORS, strict=False):
        band(left, twin_curves(rows, order), color, f"at most {order} bodies")
        left.axhline(rows.where("twin-law", order=order).entropy.mean(), color=color, lw=0.8, ls=":")
        left.axvline(twin_saturation(order)(rows).mean(), color=color, lw=0.8, ls="--")
    left.set(xscale="log", xlabel="step", ylabel="exact loss (nats per token)")
    left.set_title("An encoder that learns a four-body law, on its exact clones")
    left.legend()
    orders = sorted(rows["twin-sampler"].order.unique().tolist())
    for shift, (sampler, color) in enumerate(zip(SAMPLERS, COLORS, strict=False)):
        values = [distance(order, sampler)(rows) for order in orders]
        right.bar(
            np.arange(len(orders)) + 0.2 * (shift - 1.5),
            [each.mean() for each in values],
            0.18,
            yerr=[each.std() if len(each) > 1 else 0 for each in values],
            color=color,
            label=sampler,
        )
    right.set_xticks(range(len(orders)), [f"{order} bodies" for order in orders])
    right.set(ylabel="total variation to the law", ylim=(0, 1))
    right.set_title("Samplers given exact conditionals")
    right.legend()
    return drawing


FIGURES = (
    Figure(
        name="followed",
        caption="An encoder followed through its training on clones of growing order (first number of sweeps) and on "
        "the text itself; means over orders of the data, bands of one deviation; dotted lines where a loss is at its "
        "lowest. Levels differ between clones, which have entropies of their own: what counts is when a curve ends its "
        "fall.",
        draw=_draw_followed,
    ),
    Figure(
        name="sweeps",
        caption="Left and middle: mean energy (the sum of raw scores, negative) of the sequences by sweep, from "
        "held-out text on; dotted lines where clones are taken. Right: losses of the followed encoder on clones taken "
        "at the first and at the last of them.",
        draw=_draw_sweeps,
    ),
    Figure(
        name="twin",
        caption="Left: a law of four-body energies and its exact parts of at most two and three bodies, of largest "
        "entropy; losses of an encoder that learns the law, on each of them, without sampling error. Dotted: the least "
        "possible; dashed: where a loss is at its lowest. Right: how far the invariant law of each sampler is from a "
        "law of exactly k bodies whose conditionals it is given.",
        draw=_draw_twin,
    ),
)
