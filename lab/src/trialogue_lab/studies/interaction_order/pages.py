"""Tables and figures of the study."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from pandas import DataFrame, Series

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Rows, Statistic, figure, finish, result_table, spread
from trialogue_lab.studies.interaction_order import statistics as stats
from trialogue_lab.studies.interaction_order.statistics import FORMS

_DEPTHS = {1: BAD, 2: COLORS[4], 3: OURS}
_LAYERS = {1: COLORS[3], 2: GOOD, 3: OURS}
_NAMES = {1: "first layer", 2: "middle layer", 3: "last layer"}


def _select_example(rows: Rows) -> int:
    """Return the seed of the distribution to draw, the one whose lowest losses are farthest apart."""
    bounds = rows["law"]
    smaller_step = (bounds.two - bounds.three).combine(bounds.three - bounds.four, min)
    return int(bounds.seed.iloc[smaller_step.argmax()])


@figure(
    "staircase",
    "Training on full four-body distributions. Top: one distribution, chosen for its large steps between bounds. One "
    "layer stops at the two-body bound, two layers stop at the three-body bound, and three layers pass both. Bottom: "
    "three layers on all distributions, on the scale of the bounds, and the steps at which their layers begin to "
    "learn. The last layer is first, and the other two follow in either order.",
)
def _staircase_figure(rows: Rows) -> Drawing:
    drawing, (curves, moved, heights, onsets) = panels(2, 2, width=4.9, height=3.5)
    seed = _select_example(rows)
    bounds = rows.where("law", seed=seed).iloc[0]
    _draw_one_distribution(curves, moved, bounds, rows.where("curve", seed=seed))
    curves.set(ylabel="loss (nats per token)", title=f"One distribution (seed {seed}): losses and bounds")
    finish(moved, "The same: mean square displacement, three layers", legend="upper left")
    _draw_heights(rows, heights)
    _draw_onsets(rows, onsets)
    return drawing


def _draw_one_distribution(curves: Axes, moved: Axes, bounds: "Series[Any]", table: DataFrame) -> None:
    """Draw the losses of networks by step, and how far each layer's weights move from their initial values."""
    _draw_bounds(curves, bounds)
    table = table[table.step > 0]
    for layers, color in _DEPTHS.items():
        one = table[table.layers == layers]
        curves.plot(one.step, one.loss, color=color, label=_make_network_label(layers))
    finish(curves, legend="upper right", xscale="log", xlabel="step")
    three = table[table.layers == 3]
    for layer, color in _LAYERS.items():
        moved.plot(three.step, three[f"moved_{layer}"], color=color, label=_NAMES[layer])
    moved.set(xscale="log", yscale="log", xlabel="step", ylim=(1e-6, None))


def _make_network_label(layers: int) -> str:
    return f"{layers} layer{'s' * (layers > 1)}"


def _draw_bounds(axes: Axes, bounds: "Series[Any]") -> None:
    transform = axes.get_yaxis_transform()
    for form in FORMS.values():
        axes.axhline(bounds[form], color=QUIET, ls="--", lw=1)
        axes.text(0.02, bounds[form], f"{form} bodies", fontsize=9, va="bottom", transform=transform)


def _draw_heights(rows: Rows, axes: Axes) -> None:
    bounds = rows["law"].set_index("seed")
    three = rows.where("curve", layers=3)
    for seed, curve in three[three.step > 0].groupby("seed"):
        levels = bounds.loc[seed, ["four", "three", "two"]].to_numpy(float)
        axes.plot(curve.step, _rescale_losses(curve.loss.to_numpy(), levels), color=OURS, lw=0.7, alpha=0.6)
    for level in (0, 1, 2):
        axes.axhline(level, color=QUIET, ls="--", lw=1)
    axes.set(xscale="log", xlabel="step", ylim=(-0.1, 3), yticks=(0, 1, 2))
    axes.set_yticklabels(["four", "three", "two\nbodies"])
    axes.set_title("Three layers on all distributions, between the bounds")


def _rescale_losses(losses: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map losses to a scale on which the increasing `levels` (3,) are 0, 1 and 2."""
    inside = np.interp(losses, levels, (0.0, 1.0, 2.0))
    beyond = 2 + (losses - levels[2]) / (levels[2] - levels[1])
    return np.where(losses > levels[2], beyond, inside)


def _draw_onsets(rows: Rows, axes: Axes) -> None:
    table = rows.where("training", layers=3).sort_values("onset_1").reset_index()
    places = np.arange(len(table))
    for layer, color in _LAYERS.items():
        axes.plot(places, table[f"onset_{layer}"], "o", color=color, label=_NAMES[layer])
    axes.set(yscale="log", xlabel="distribution, by onset of its first layer", ylabel="step")
    axes.set_xticks([])
    axes.set_title("Step at a tenth of the final displacement")
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.4))


@figure(
    "single-layers",
    "Left: final losses relative to the bounds that the document names. Right: one layer of factored or standard "
    "attention on two-body distributions. Each point is one distribution.",
)
def _single_layers_figure(rows: Rows) -> Drawing:
    drawing, (ends, two) = panels(2, width=4.4, height=3.4)
    ends.axhspan(-0.01, 0.01, color=QUIET, alpha=0.25, lw=0)
    _draw_points(ends, rows, [(stats.excess(layers), color) for layers, color in _DEPTHS.items()])
    ends.set_xticks(
        range(3), [f"{_make_network_label(layers)},\n{FORMS[layers]} bodies" for layers in _DEPTHS]
    )
    ends.set_title("Final loss above the bound (nats),\nmean ± deviation (grey: ± 0.01)")
    networks = {"factored": OURS, "standard": BAD}
    _draw_points(two, rows, [(stats.pair_excess(name), color) for name, color in networks.items()])
    two.set_xticks(range(2), ["one factored layer", "one layer of\nstandard attention"])
    two.set_title("Loss above the entropy on two\nbodies (nats), mean ± deviation")
    return drawing


def _draw_points(axes: Axes, rows: Rows, columns: Sequence[tuple[Statistic, str]]) -> None:
    """Draw columns of points, one point per distribution, with the mean and standard deviation next to them."""
    for place, (statistic, color) in enumerate(columns):
        values = statistic(rows)
        across = np.linspace(place - 0.2, place + 0.2, len(values))
        axes.plot(across, values, "o", ms=3, color=color)
        spread(axes, [place + 0.3], [statistic], rows, "_", ms=12, color=color)


@figure(
    "large-law",
    "Training on samples of one distribution of the document's size, with cyclically masked tokens in mini-batches.",
)
def _large_figure(rows: Rows) -> Drawing:
    drawing, (curves, moved) = panels(2, width=4.9, height=3.5)
    if "large-law" not in rows:
        return drawing
    seed = int(rows["large-law"].seed.min())
    bounds = rows.where("large-law", seed=seed).iloc[0]
    _draw_one_distribution(curves, moved, bounds, rows.where("large-curve", seed=seed))
    curves.set(ylim=(None, bounds.two + 1.5 * (bounds.two - bounds.four)))
    curves.set_ylabel("loss on unseen samples (nats per token)")
    curves.set_title(f"Samples of a distribution over {rows.config.get('large_sites', '')} tokens")
    finish(moved, "Mean square displacement, three layers", legend=True)
    return drawing


@result_table(
    "Interaction orders of random networks",
    "Section 2 and section A.2",
    row_heading="network",
    note="Tokens have two values. Bodies are counted in terms whose coefficient exceeds 1e-10 of the largest one.",
)
def _orders_table(rows: Rows) -> DataFrame:
    table = rows["spectrum"]
    by_shape = table.groupby(["norm", "layers"])
    found = DataFrame(
        {
            "most bodies": by_shape.bodies.max(),
            "2^(n-1) + 1": by_shape.bound.max(),
            "n + 1": by_shape.printed.max(),
            "largest coefficient beyond": by_shape.beyond.max(),
            "smallest coefficient at the bound": by_shape.top.min(),
        }
    )
    found.index = found.index.map(lambda key: f"{key[1]} layers{', layer norm' if key[0] else ''}")
    return found


TABLES = (_orders_table,)

FIGURES = (_staircase_figure, _single_layers_figure, _large_figure)
