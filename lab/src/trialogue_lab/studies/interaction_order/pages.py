"""Tables and figures of the study: curves beside the bounds, displacements by layer, and the large law."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from pandas import DataFrame, Series

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Figure, ResultTable, Rows
from trialogue_lab.ledger.pages.figures import spread
from trialogue_lab.studies.interaction_order.statistics import (
    FORMS,
    bound,
    excess,
    in_order,
    last_first,
    loss,
    middle_before_first,
    pair_excess,
    pairs,
    standing,
)

_DEPTHS = {1: BAD, 2: COLORS[4], 3: OURS}
_LAYERS = {1: COLORS[3], 2: GOOD, 3: OURS}
_NAMES = {1: "first layer", 2: "middle layer", 3: "last layer"}
_STAIRS = "Figure 2b"


def _example(rows: Rows) -> int:
    """The law whose smaller step is the highest."""
    laws = rows["law"]
    return int(laws.seed.iloc[np.minimum(laws.two - laws.three, laws.three - laws.four).argmax()])


def _draw_staircase(rows: Rows) -> Drawing:
    drawing, (curves, moved, heights, onsets) = panels(2, 2, width=4.9, height=3.5)
    seed = _example(rows)
    law = rows.where("law", seed=seed).iloc[0]
    _draw_bounds(curves, law)
    table = rows.where("curve", seed=seed)
    for layers, color in _DEPTHS.items():
        one = table[(table.layers == layers) & (table.step > 0)]
        curves.plot(one.step, one.loss, color=color, label=f"{layers} layer{'s' * (layers > 1)}")
    curves.set(xscale="log", xlabel="step", ylabel="loss (nats per token)")
    curves.set_title(f"One law ({seed}): losses and bounds")
    curves.legend(loc="upper right")
    three = table[(table.layers == 3) & (table.step > 0)]
    for layer, color in _LAYERS.items():
        moved.plot(three.step, three[f"moved_{layer}"], color=color, label=_NAMES[layer])
    moved.set(xscale="log", yscale="log", xlabel="step", ylim=(1e-6, None))
    moved.set_title("The same: mean square displacement, three layers")
    moved.legend(loc="upper left")
    _draw_heights(rows, heights)
    _draw_onsets(rows, onsets)
    return drawing


def _draw_bounds(axes: Axes, law: "Series[Any]") -> None:
    for form, label in (
        ("two", "two bodies"),
        ("three", "three bodies"),
        ("four", "four bodies: the entropy"),
    ):
        axes.axhline(law[form], color=QUIET, ls="--", lw=1)
        across = axes.get_yaxis_transform()
        axes.text(0.02, law[form], label, fontsize=7, va="bottom", color="#444444", transform=across)


def _draw_heights(rows: Rows, axes: Axes) -> None:
    bounds = rows["law"].set_index("seed")
    three = rows.where("curve", layers=3)
    for seed, curve in three[three.step > 0].groupby("seed"):
        levels = bounds.loc[seed, ["four", "three", "two"]].to_numpy(float)
        axes.plot(curve.step, _height(curve.loss.to_numpy(), levels), color=OURS, lw=0.7, alpha=0.6)
    for level in (0, 1, 2):
        axes.axhline(level, color=QUIET, ls="--", lw=1)
    axes.set(xscale="log", xlabel="step", ylim=(-0.1, 3), yticks=(0, 1, 2))
    axes.set_yticklabels(["four", "three", "two\nbodies"])
    axes.set_title("Three layers on every law, between its bounds")


def _height(losses: NDArray[np.float64], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Losses on the scale on which the bounds `levels` (3,), increasing, are 0, 1 and 2."""
    inside = np.interp(losses, levels, (0.0, 1.0, 2.0))
    beyond = 2 + (losses - levels[2]) / (levels[2] - levels[1])
    return np.where(losses > levels[2], beyond, inside)


def _draw_onsets(rows: Rows, axes: Axes) -> None:
    table = rows.where("training", layers=3).sort_values("onset_1").reset_index()
    places = np.arange(len(table))
    for layer, color in _LAYERS.items():
        axes.plot(places, table[f"onset_{layer}"], "o", color=color, label=_NAMES[layer])
    axes.set(yscale="log", xlabel="law, by when its first layer sets out", ylabel="step")
    axes.set_xticks([])
    axes.set_title("When layers set out: a tenth of their displacement")
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.4))


def _draw_single_layers(rows: Rows) -> Drawing:
    drawing, (ends, two) = panels(2, width=4.4, height=3.4)
    depths = list(_DEPTHS)
    ends.axhspan(-0.01, 0.01, color=QUIET, alpha=0.25, lw=0)
    for place, layers in enumerate(depths):
        values = excess(layers)(rows)
        ends.plot(
            np.linspace(place - 0.2, place + 0.2, len(values)), values, "o", ms=3, color=_DEPTHS[layers]
        )
        spread(ends, [place + 0.3], [excess(layers)], rows, "_", ms=12, color=_DEPTHS[layers])
    ends.set_xticks(
        range(len(depths)),
        [f"{layers} layer{'s' * (layers > 1)},\n{FORMS[layers]} bodies" for layers in depths],
    )
    ends.set_title("Final loss above its bound (nats):\nlaws, mean ± deviation; grey: ± 0.01")
    layers_alone = {"factored": OURS, "standard": BAD}
    for place, (name, color) in enumerate(layers_alone.items()):
        values = pair_excess(name)(rows)
        two.plot(np.linspace(place - 0.2, place + 0.2, len(values)), values, "o", ms=3, color=color)
        spread(two, [place + 0.3], [pair_excess(name)], rows, "_", ms=12, color=color)
    two.set_xticks(range(len(layers_alone)), ["one factored layer", "one layer of\nstandard attention"])
    two.set_title("Loss above the entropy on laws of two\nbodies (nats): laws, mean ± deviation")
    return drawing


def _draw_large(rows: Rows) -> Drawing:
    drawing, (curves, moved) = panels(2, width=4.9, height=3.5)
    if "large-law" not in rows:
        return drawing
    seed = int(rows["large-law"].seed.min())
    law = rows.where("large-law", seed=seed).iloc[0]
    _draw_bounds(curves, law)
    table = rows.where("large-curve", seed=seed)
    for layers, color in _DEPTHS.items():
        one = table[(table.layers == layers) & (table.step > 0)]
        curves.plot(one.step, one.loss, color=color, label=f"{layers} layer{'s' * (layers > 1)}")
    highest = law.two + 1.5 * (law.two - law.four)
    curves.set(xscale="log", xlabel="step", ylim=(None, highest))
    curves.set_ylabel("loss on unseen samples (nats per token)")
    curves.set_title(f"Samples of a law of {rows.config.get('large_sites', '')} tokens")
    curves.legend(loc="upper right")
    three = table[(table.layers == 3) & (table.step > 0)]
    for layer, color in _LAYERS.items():
        moved.plot(three.step, three[f"moved_{layer}"], color=color, label=_NAMES[layer])
    moved.set(xscale="log", yscale="log", xlabel="step", ylim=(1e-6, None))
    moved.set_title("Mean square displacement, three layers")
    moved.legend()
    return drawing


def _stairs(rows: Rows) -> Cells:
    del rows
    return {
        f"{layers} layer{'s' * (layers > 1)}": {
            "loss": loss(layers),
            "bound": bound(FORMS[layers]),
            "above it": excess(layers),
        }
        for layers in _DEPTHS
    } | {
        "three layers, on the way": {
            "standing at two bodies": standing(1).as_ratio(),
            "standing at three": standing(2).as_ratio(),
            "last, middle, first": in_order(),
            "last first": last_first(),
            "middle before first": middle_before_first(),
        }
    }


def _pairs(rows: Rows) -> Cells:
    del rows
    return {
        "one factored layer": {
            "above the entropy": pair_excess("factored"),
            "correlation with J": pairs("couplings"),
            "with U": pairs("similarities"),
            "parameters": pairs("factored_parameters"),
        },
        "one layer of standard attention": {
            "above the entropy": pair_excess("standard"),
            "parameters": pairs("standard_parameters"),
        },
    }


def _orders(rows: Rows) -> DataFrame:
    table = rows["spectrum"]
    by_shape = table.groupby(["norm", "layers"])
    found = DataFrame(
        {
            "most bodies": by_shape.bodies.max(),
            "2^(n-1) + 1": by_shape.bound.max(),
            "n + 1": by_shape.printed.max(),
            "largest beyond": by_shape.beyond.max(),
            "smallest at the bound": by_shape.top.min(),
        }
    )
    found.index = found.index.map(lambda key: f"{key[1]} layers{', layer norm' if key[0] else ''}")
    return found


def _large(rows: Rows) -> Cells:
    laws = rows["large-law"].set_index("seed")
    ends = rows["large-curve"].sort_values("step").groupby(["layers", "seed"]).loss.last()
    forms = {form: laws[form] for form in ("two", "three", "four")}
    return {f"{form} bodies": {"loss": values} for form, values in forms.items()} | {
        f"{layers} layer{'s' * (layers > 1)}": {"loss": ends[layers]} for layers in _DEPTHS
    }


TABLES = (
    ResultTable(
        title="The staircase",
        source=_STAIRS,
        cells=_stairs,
        rows_are="network",
        note="nats per token, means over laws, ± one standard deviation; standing: steps within 0.01 nats of the loss "
        "of one or two layers over those of the fall to it (geometric means); shares of trainings in which layers set "
        "out in an order",
    ),
    ResultTable(
        title="One layer on two bodies",
        source="Section 2, equations 1 and 2",
        cells=_pairs,
        rows_are="layer",
        note="nats per token, and absolute correlations with the law's own tensors; means over laws, ± one standard "
        "deviation",
    ),
    ResultTable(
        title="Interaction orders of random networks",
        source="Section 2 and section A.2",
        cells=_orders,
        rows_are="network",
        note="tokens of two values; bodies of terms with a coefficient above 1e-10 of the largest, over all networks",
    ),
    ResultTable(
        title="A law of the document's size",
        source=_STAIRS,
        cells=_large,
        rows_are="model",
        note="loss on unseen samples, nats per token; forms of two and three bodies are trained on the samples as the "
        "networks are, by AdamW; four bodies: the entropy on the same sequences; decides nothing",
    ),
)

FIGURES = (
    Figure(
        name="staircase",
        caption="Laws of four bodies, trained on whole. Above: the law whose smaller step is highest; one layer stops "
        "at the bound of two bodies, two at that of three, and three pass both. Below: three layers on all laws, on "
        "the scale of each law's bounds, and when their layers set out: the last one first, the other two in either "
        "order.",
        draw=_draw_staircase,
    ),
    Figure(
        name="single-layers",
        caption="Left: where training ends, beside the bound that the document names. Right: one layer on laws of two "
        "bodies, factored and standard, one point a law.",
        draw=_draw_single_layers,
    ),
    Figure(
        name="large-law",
        caption="Masked tokens of samples in mini-batches, cyclically, on one law of the size that the document uses.",
        draw=_draw_large,
    ),
)
