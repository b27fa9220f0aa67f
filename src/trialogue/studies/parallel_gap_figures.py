"""The figure of the study `parallel-gap`: expected steps as the clique grows, and what products cost."""

import math

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure
from trialogue.studies.parallel_gap_rows import GIBBS, PARALLEL, network_sizes, networks
from trialogue.studies.rows import kind

_GIBBS, _PARALLEL, _SINGLE, _NETWORK, _GRAY = "#1a7f37", "#cf222e", "#bf8700", "#1f6feb", "#57606a"


def _draw(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(11.6, 4.0), layout="constrained")
    left, middle, right = drawing.subplots(1, 3)
    growth = kind(rows, "growth")
    for column, color, label in (
        ("log_steps_parallel", _PARALLEL, "independent parallel"),
        ("log_steps_single", _SINGLE, "1-Gibbs"),
        ("log_steps_gibbs", _GIBBS, "k-Gibbs, k = N = |C|"),
    ):
        steps = np.maximum(growth[column] / math.log(10), 0.0)
        left.plot(growth.clique, steps, "o-", ms=4, lw=1, color=color, label=label)
    left.set(yscale="symlog", xlabel="size of the clique |C|", ylabel="log10 of the expected steps")
    left.set_title("From the smaller mode's side to R_1, exact", fontsize=10, loc="left")
    left.legend(fontsize=8)
    middle.margins(y=0.25)
    sizes = network_sizes(rows)
    names = [*(f"{size} sites" for size in sizes), f"{sizes[-1]} sites,\nparallel"]
    groups = [*(networks(rows, GIBBS, size) for size in sizes), networks(rows, PARALLEL)]
    places = np.arange(len(groups), dtype=float)
    bars = {
        middle: (("best_divergence", _GRAY, "best product law"), ("divergence", _NETWORK, "transformer")),
        right: (
            ("best_variation", _GRAY, "best product law"),
            ("likely_variation", "#afb8c1", "product of marginals"),
            ("variation", _NETWORK, "transformer"),
        ),
    }
    for axes, columns in bars.items():
        width = 0.8 / len(columns)
        for place, (column, color, label) in enumerate(columns):
            means = [group[column].mean() for group in groups]
            spread = [group[column].std() for group in groups]
            shift = width * (place - (len(columns) - 1) / 2)
            axes.bar(places + shift, means, width * 0.92, yerr=spread, color=color, label=label)
        axes.set_xticks(places, names, fontsize=8)
        axes.legend(fontsize=8, loc="upper left")
    middle.set_title("One step imitated: KL from the step's law (nats)", fontsize=10, loc="left")
    right.set_title("The same in total variation", fontsize=10, loc="left")
    right.set(ylim=(0, 1.25))
    for axes in (left, middle, right):
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
    return drawing


FIGURES = (
    Figure(
        name="gap",
        caption="Left: expected steps to the larger mode, exact, with h_G and J_0 of Assumption 4.1.6 for δ = 0.1. "
        "Middle and right: a bidirectional transformer trained on single steps of k-Gibbs on a clique, k all of its "
        "sites: in KL it is as good as a product law can be, in total variation it is worse than the best one. Last "
        "group: trained on steps of independent parallel updates, which are products.",
        draw=_draw,
    ),
)
