"""Tables and figures of the study: curves beside the bounds, displacements by layer, and the large law."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from pandas import DataFrame, Series

from trialogue.display.figures import BAD, COLORS, GOOD, OURS, QUIET, panels
from trialogue_lab.ledger import Cells, Rows, Statistic, figure, finish, result_table, spread
from trialogue_lab.studies.interaction_order import statistics
from trialogue_lab.studies.interaction_order.statistics import FORMS

_DEPTHS = {1: BAD, 2: COLORS[4], 3: OURS}
_LAYERS = {1: COLORS[3], 2: GOOD, 3: OURS}
_NAMES = {1: "first layer", 2: "middle layer", 3: "last layer"}
_STAIRS = "Figure 2b"


def _example(rows: Rows) -> int:
    """The law whose smaller step is the highest."""
    laws = rows["law"]
    return int(laws.seed.iloc[np.minimum(laws.two - laws.three, laws.three - laws.four).argmax()])


@figure(
    "staircase",
    "Laws of four bodies, trained on whole. Above: the law whose smaller step is highest; one layer stops "
    "at the bound of two bodies, two at that of three, and three pass both. Below: three layers on all laws, on "
    "the scale of each law's bounds, and when their layers set out: the last one first, the other two in either "
    "order.",
)
def _staircase_figure(rows: Rows) -> Drawing:
    drawing, (curves, moved, heights, onsets) = panels(2, 2, width=4.9, height=3.5)
    seed = _example(rows)
    _draw_one_law(curves, moved, rows.where("law", seed=seed).iloc[0], rows.where("curve", seed=seed))
    curves.set(ylabel="loss (nats per token)", title=f"One law ({seed}): losses and bounds")
    finish(moved, "The same: mean square displacement, three layers", legend="upper left")
    _draw_heights(rows, heights)
    _draw_onsets(rows, onsets)
    return drawing


def _draw_one_law(curves: Axes, moved: Axes, law: "Series[Any]", table: DataFrame) -> None:
    """Losses of all networks on one law beside its bounds, and displacements of the layers of the deepest."""
    _draw_bounds(curves, law)
    table = table[table.step > 0]
    for layers, color in _DEPTHS.items():
        one = table[table.layers == layers]
        curves.plot(one.step, one.loss, color=color, label=_network(layers))
    finish(curves, legend="upper right", xscale="log", xlabel="step")
    three = table[table.layers == 3]
    for layer, color in _LAYERS.items():
        moved.plot(three.step, three[f"moved_{layer}"], color=color, label=_NAMES[layer])
    moved.set(xscale="log", yscale="log", xlabel="step", ylim=(1e-6, None))


def _network(layers: int) -> str:
    return f"{layers} layer{'s' * (layers > 1)}"


def _draw_bounds(axes: Axes, law: "Series[Any]") -> None:
    labels = {"two": "two bodies", "three": "three bodies", "four": "four bodies: the entropy"}
    for form, label in labels.items():
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


@figure(
    "single-layers",
    "Left: where training ends, beside the bound that the document names. Right: one layer on laws of two "
    "bodies, factored and standard, one point a law.",
)
def _single_layers_figure(rows: Rows) -> Drawing:
    drawing, (ends, two) = panels(2, width=4.4, height=3.4)
    ends.axhspan(-0.01, 0.01, color=QUIET, alpha=0.25, lw=0)
    _draw_laws(ends, rows, [(statistics.excess(layers), color) for layers, color in _DEPTHS.items()])
    ends.set_xticks(range(3), [f"{_network(layers)},\n{FORMS[layers]} bodies" for layers in _DEPTHS])
    ends.set_title("Final loss above its bound (nats):\nlaws, mean ± deviation; grey: ± 0.01")
    _draw_laws(
        two, rows, [(statistics.pair_excess("factored"), OURS), (statistics.pair_excess("standard"), BAD)]
    )
    two.set_xticks(range(2), ["one factored layer", "one layer of\nstandard attention"])
    two.set_title("Loss above the entropy on laws of two\nbodies (nats): laws, mean ± deviation")
    return drawing


def _draw_laws(axes: Axes, rows: Rows, columns: Sequence[tuple[Statistic, str]]) -> None:
    """Columns of points, one a law, with mean and deviation to the right of each."""
    for place, (quantity, color) in enumerate(columns):
        values = quantity(rows)
        across = np.linspace(place - 0.2, place + 0.2, len(values))
        axes.plot(across, values, "o", ms=3, color=color)
        spread(axes, [place + 0.3], [quantity], rows, "_", ms=12, color=color)


@figure(
    "large-law",
    "Masked tokens of samples in mini-batches, cyclically, on one law of the size that the document uses.",
)
def _large_figure(rows: Rows) -> Drawing:
    drawing, (curves, moved) = panels(2, width=4.9, height=3.5)
    if "large-law" not in rows:
        return drawing
    seed = int(rows["large-law"].seed.min())
    law = rows.where("large-law", seed=seed).iloc[0]
    _draw_one_law(curves, moved, law, rows.where("large-curve", seed=seed))
    curves.set(ylim=(None, law.two + 1.5 * (law.two - law.four)))
    curves.set_ylabel("loss on unseen samples (nats per token)")
    curves.set_title(f"Samples of a law of {rows.config.get('large_sites', '')} tokens")
    finish(moved, "Mean square displacement, three layers", legend=True)
    return drawing


@result_table(
    "The staircase",
    _STAIRS,
    rows_are="network",
    note="nats per token, means over laws, ± one standard deviation; standing: steps within 0.01 nats of the loss "
    "of one or two layers over those of the fall to it (geometric means); shares of trainings in which layers set "
    "out in an order",
)
def _stairs_table(rows: Rows) -> Cells:
    del rows
    return {
        _network(layers): {
            "loss": statistics.loss(layers),
            "bound": statistics.bound(FORMS[layers]),
            "above it": statistics.excess(layers),
        }
        for layers in _DEPTHS
    } | {
        "three layers, on the way": {
            "standing at two bodies": statistics.standing(1).as_ratio(),
            "standing at three": statistics.standing(2).as_ratio(),
            "last, middle, first": statistics.in_order(),
            "last first": statistics.last_first(),
            "middle before first": statistics.middle_before_first(),
        }
    }


@result_table(
    "One layer on two bodies",
    "Section 2, equations 1 and 2",
    rows_are="layer",
    note="nats per token, and absolute correlations with the law's own tensors; means over laws, ± one standard "
    "deviation",
)
def _pairs_table(rows: Rows) -> Cells:
    del rows
    return {
        "one factored layer": {
            "above the entropy": statistics.pair_excess("factored"),
            "correlation with J": statistics.pairs("couplings"),
            "with U": statistics.pairs("similarities"),
            "parameters": statistics.pairs("factored_parameters"),
        },
        "one layer of standard attention": {
            "above the entropy": statistics.pair_excess("standard"),
            "parameters": statistics.pairs("standard_parameters"),
        },
    }


@result_table(
    "Interaction orders of random networks",
    "Section 2 and section A.2",
    rows_are="network",
    note="tokens of two values; bodies of terms with a coefficient above 1e-10 of the largest, over all networks",
)
def _orders_table(rows: Rows) -> DataFrame:
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


@result_table(
    "A law of the document's size",
    _STAIRS,
    rows_are="model",
    note="loss on unseen samples, nats per token; forms of two and three bodies are trained on the samples as the "
    "networks are, by AdamW; four bodies: the entropy on the same sequences; decides nothing",
)
def _large_table(rows: Rows) -> Cells:
    laws = rows["large-law"].set_index("seed")
    ends = rows["large-curve"].sort_values("step").groupby(["layers", "seed"]).loss.last()
    forms = {form: laws[form] for form in ("two", "three", "four")}
    return {f"{form} bodies": {"loss": values} for form, values in forms.items()} | {
        _network(layers): {"loss": ends[layers]} for layers in _DEPTHS
    }


TABLES = (_stairs_table, _pairs_table, _orders_table, _large_table)

FIGURES = (_staircase_figure, _single_layers_figure, _large_figure)
