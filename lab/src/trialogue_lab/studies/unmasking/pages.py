"""Tables and the figure of the study."""

import numpy as np
from matplotlib.figure import Figure as Drawing

from trialogue_lab.ledger import (
    BAD,
    COLORS,
    GOOD,
    OURS,
    QUIET,
    Cells,
    Rows,
    figure,
    finish,
    panels,
    result_table,
)
from trialogue_lab.studies.unmasking.config import NOISE
from trialogue_lab.studies.unmasking.statistics import best_passes, more_passes, remasking, sampled, score

_SAMPLERS = ("random", "left to right", "confidence", "entropy", "margin", "draw then select")
_COLORS = dict(zip(_SAMPLERS, (GOOD, QUIET, OURS, COLORS[3], COLORS[4], BAD), strict=True))


@result_table(
    "Samplers with a fixed number of tokens per pass",
    "arXiv 2511.04647, 2604.00375",
    row_heading="order and tokens per pass",
    note="Divergence of the exact output distribution in nats, and its entropy and the coverage of 64 samples relative "
    "to the true distribution, ± one standard deviation over seeds. Noise is that of the logits. The order draw then "
    "select is low-confidence remasking.",
)
def _samplers_table(rows: Rows) -> Cells:
    cells: dict[str, dict[str, object]] = {}
    for name in _SAMPLERS:
        for size in (1, *rows.config["sizes"]):
            cells[f"{name}, {size}"] = {
                "divergence": sampled(name, size, "divergence"),
                f"divergence, noise {NOISE:g}": sampled(name, size, "divergence", NOISE),
                "entropy": sampled(name, size, "entropy / true_entropy"),
                f"entropy, noise {NOISE:g}": sampled(name, size, "entropy / true_entropy", NOISE),
                "coverage": sampled(name, size, "coverage / true_coverage"),
            }
    cells["confidence, threshold 0.9"] = {
        "divergence": sampled("threshold", 0, "divergence"),
        f"divergence, noise {NOISE:g}": sampled("threshold", 0, "divergence", NOISE),
        "entropy": sampled("threshold", 0, "entropy / true_entropy"),
        f"entropy, noise {NOISE:g}": sampled("threshold", 0, "entropy / true_entropy", NOISE),
        "coverage": sampled("threshold", 0, "coverage / true_coverage"),
    }
    return cells  # type: ignore[return-value]


@result_table(
    "Losses of texts by order",
    "arXiv 2603.01367",
    row_heading="noise",
    note="Nats per token, averaged over the true distribution, ± one standard deviation over seeds. The bound averages "
    "the losses of all orders. The sum is that of the scores of all texts under their best orders, by which the "
    "normalised loss divides.",
)
def _scores_table(rows: Rows) -> Cells:
    return {
        f"{noise:g}": {
            "entropy": score("entropy", noise),
            "bound": score("mean_order", noise),
            "left to right": score("left_to_right", noise),
            "random order": score("mixture", noise),
            "best order": score("best", noise),
            "sum": score("best_total", noise),
            "best order, normalised": score("best_normalised", noise),
            "best in blocks of 4, normalised": score("blocks_normalised", noise),
        }
        for noise in rows.distinct("scores", "noise")
    }


@result_table(
    "Remasking by noise",
    "arXiv 2503.00307",
    row_heading="noise",
    note="Ratios of divergences, as geometric means over families, ± one standard deviation of the logarithm over "
    "seeds. A ratio above 1 means that remasking is farther from the true distribution.",
)
def _remasking_table(rows: Rows) -> Cells:
    cells: dict[str, dict[str, object]] = {}
    for noise in rows.distinct("remasking", "noise"):
        cells[f"{noise:g}"] = {
            f"with / without remasking, {multiple:g} passes per token": remasking(multiple, noise).as_ratio()
            for multiple in rows.distinct("remasking", "passes_per_token")
        }
        cells[f"{noise:g}"] |= {
            "16 / 4 passes per token, with remasking": more_passes(4.0, 16.0, noise).as_ratio(),
            "best passes per token, with remasking": best_passes(noise).as_ratio(),
            "best passes per token, without": best_passes(noise, "no remasking").as_ratio(),
        }
    return cells  # type: ignore[return-value]


TABLES = (_samplers_table, _scores_table, _remasking_table)


@figure(
    "distances",
    "Left: divergence of samplers with true conditionals, by the number of tokens per pass. Middle: losses by noise in "
    "the logits, minus the entropy. Right: divergence with remasking (solid) and without (dashed), by the number of "
    "passes. Means over families and seeds.",
)
def _distances_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, width=5.0, height=3.9)
    table = rows.where("sampler", noise=0.0)
    for name in _SAMPLERS:
        means = table[(table.sampler == name) & (table.divergence > 1e-9)].groupby("size").divergence.mean()
        left.plot(means.index, means, "o-", color=_COLORS[name], label=name)
    finish(
        left,
        "True conditionals",
        legend=True,
        yscale="log",
        xlabel="tokens per pass",
        ylabel="divergence (nats)",
    )
    scores = rows["scores"].groupby("noise").mean(numeric_only=True)
    for column, color, label in (
        ("mean_order", QUIET, "evidence lower bound"),
        ("left_to_right", COLORS[3], "left to right"),
        ("mixture", GOOD, "random order"),
        ("best_normalised", OURS, "best order, normalised"),
        ("best", BAD, "best order"),
    ):
        middle.plot(scores.index, scores[column] - scores.entropy, "o-", color=color, label=label)
    middle.axhline(0, color=QUIET, lw=0.8)
    finish(
        middle,
        "Losses",
        legend=True,
        xlabel="standard deviation of the noise in the logits",
        ylabel="loss - entropy (nats per token)",
    )
    remasked = rows["remasking"]
    for color, noise in zip(COLORS, np.unique(remasked.noise), strict=False):
        for name, line in (("ReMDM", "o-"), ("no remasking", "o--")):
            chosen = remasked[(remasked.noise == noise) & (remasked.sampler == name)]
            means = chosen.groupby("passes_per_token").divergence.mean()
            label = f"noise {noise:g}" if name == "ReMDM" else ""
            right.plot(means.index, means, line, color=color, label=label)
    finish(
        right,
        "With remasking (solid), without (dashed)",
        legend=True,
        xscale="log",
        yscale="log",
        xlabel="passes per token",
        ylabel="divergence (nats)",
    )
    left.set_xticks(
        [size for size in rows.distinct("sampler", "size") if size]
    )  # 0: a random number of tokens
    for axes, ticks in ((left, (0.2, 0.5, 1, 2, 4)), (right, (0.01, 0.03, 0.1))):
        axes.set_yticks(ticks, [f"{number:g}" for number in ticks])
    passes = rows.distinct("remasking", "passes_per_token")
    right.set_xticks(passes, [f"{number:g}" for number in passes])
    for axes in (left, right):
        axes.minorticks_off()
    return drawing


FIGURES = (_distances_figure,)
