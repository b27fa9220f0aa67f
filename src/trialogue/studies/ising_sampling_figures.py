"""The figure of the study `ising-sampling`: Figure 4.3 of the thesis, and what lies above its budget."""

import math

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure
from trialogue.studies.ising_sampling_rows import exact, labels, simulated

_BUDGET = "#57606a"


def _draw(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(10.4, 4.4), layout="constrained")
    left, right = drawing.subplots(1, 2)
    names = labels(rows)
    places = np.arange(len(names), dtype=float)
    places[-1] += 0.6  # apart: it is another sampler
    cut, logs = exact(rows, "mean"), exact(rows, "log_expected")
    means = simulated(rows, "mean").groupby("coupling").mean()
    bars = simulated(rows, "deviation").groupby("coupling").mean() / 2
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, len(cut)))
    for place, (coupling, shade) in enumerate(zip(cut.index, shades, strict=True)):
        shift = 0.07 * (place - (len(cut) - 1) / 2)
        mean, bar = means.loc[coupling], bars.loc[coupling]
        below = np.minimum(bar, mean * 0.9)  # a bar down to zero has no end on this axis
        left.errorbar(
            places + shift, mean, (below, bar), fmt="o", ms=4, lw=1, color=shade, label=f"J = {coupling:g}"
        )
        for axes, values in ((left, np.log10(cut.loc[coupling])), (right, logs.loc[coupling] / math.log(10))):
            heights = 10**values if axes is left else values
            axes.plot(places[:-1], heights[:-1], "-", lw=1, color=shade)
            axes.plot(places[-1:], heights[-1:], "_", ms=14, color=shade)
        right.plot(
            places, logs.loc[coupling] / math.log(10), ".", ms=5, color=shade, label=f"J = {coupling:g}"
        )
    budget = float(rows[rows.kind == "setting"].budget.max())
    left.set(yscale="log", ylim=(0.7, budget * 1.8))
    left.axhline(budget, color=_BUDGET, lw=1, ls=":")
    right.axhline(math.log10(budget), color=_BUDGET, lw=1, ls=":", label="budget")
    left.set_title("Steps to reach R_1, at most 1000, as published", fontsize=10, loc="left")
    right.set_title("Expected steps without a budget, exact (log10)", fontsize=10, loc="left")
    for axes in (left, right):
        shown = [name.removeprefix("k = ") for name in names[:-1]]
        axes.set_xticks(places, [*shown, "indep.\nparallel"])
        axes.set_xlabel("block size k of k-Gibbs")
        axes.grid(color="#dddddd", lw=0.6)
    right.legend(fontsize=8, loc="upper center")
    return drawing


FIGURES = (
    Figure(
        name="hitting-times",
        caption="Figure 4.3, with the independent parallel sampler, which the thesis leaves out. Left: simulated means "
        "with bars of half a standard deviation over ten chains; lines and dashes are exact. Right: the exact "
        "expectations that the budget hides. At J <= 2 independent parallel takes fewer steps than 1-Gibbs (each "
        "redraws all spins), at J >= 5 neither arrives, and blocks that can hold the clique (k >= 4) nearly always do.",
        draw=_draw,
    ),
)
