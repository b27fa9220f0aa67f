"""Figures of the study `ising-masking`: Figures 4.1 and 4.2 of the thesis, beside what theory says of them."""

import math
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure
from trialogue.studies.ising_masking_rows import block_sizes, couplings, exact, fits, scaled_error

_COLORS = ("#cf222e", "#bf8700", "#1f6feb", "#1a7f37", "#8250df", "#57606a")


def _draw(rows: DataFrame, coupling: float) -> Drawing:
    drawing = Drawing(figsize=(9.6, 3.9), layout="constrained")
    if coupling not in couplings(rows):
        drawing.text(0.5, 0.5, f"J = {coupling:g} was not measured", ha="center")
        return drawing
    left, right = drawing.subplots(1, 2)
    sizes = block_sizes(rows)
    limits = {masks: exact(rows, coupling, masks).trace for masks in ("one", "all")}
    parameters = max(sizes) * (max(sizes) + 1) // 2
    for place, (size, color) in enumerate(zip(sizes, _COLORS, strict=False)):
        measured = fits(rows, coupling, size).groupby("n")
        means, bars = measured.squared_error.mean() / parameters, measured.deviation.mean() / parameters
        shift = 1.06 ** (place - (len(sizes) - 1) / 2)  # apart, so that bars can be told from each other
        n = means.index.to_numpy(dtype=float)
        left.errorbar(n * shift, means, bars / 2, fmt="o", ms=4, color=color, label=f"k = {size}")
        left.plot(n, limits["one"].loc[size] / (parameters * n), "-", lw=1, color=color)
        for masks, marker in (("one", "o"), ("all", "x")):
            scaled = scaled_error(rows, coupling, size, masks, least=0).groupby("n")
            half: Any = 2 * scaled.std() / np.sqrt(scaled.count())
            right.errorbar(n * shift, scaled.mean(), half, fmt=marker, ms=5, color=color, lw=1)
            right.axhline(limits[masks].loc[size], color=color, lw=1, ls="-" if masks == "one" else ":")
    left.plot([], [], "-", lw=1, color="#444444", label="exact, Tr Γ / (n parameters)")
    left.set(xscale="log", yscale="log", xlabel="training samples n")
    left.set_title("Mean squared error of a parameter, as published", fontsize=10, loc="left")
    left.legend(fontsize=8, loc="upper right")
    for marker, label in (("o", "one random mask a sample"), ("x", "all masks of size k of every sample")):
        right.plot([], [], marker, ms=5, color="#444444", label=label)
    right.plot([], [], "-", lw=1, color="#444444", label="exact limit Tr Γ")
    top = max(limits["one"]) * 1.9  # the legend stands above what is measured
    right.set(xscale="log", ylim=(0, top if math.isfinite(top) else None), xlabel="training samples n")
    right.set_title("n times the squared error, summed over parameters", fontsize=10, loc="left")
    right.legend(fontsize=8, loc="upper right")
    for axes in (left, right):
        axes.grid(color="#dddddd", lw=0.6)
    return drawing


FIGURES = tuple(
    Figure(
        name=name,
        caption=f"{source} (J = {coupling:g}). Left: as published, bars of half a standard deviation over ten training "
        "sets; lines are exact. Right: the same, times n and with intervals of two standard errors of the mean. With "
        "one mask a sample masking more errs less; with all masks of every sample the gap is gone.",
        draw=partial(_draw, coupling=coupling),
    )
    for name, source, coupling in (("weak-coupling", "Figure 4.1", 0.05), ("two-modes", "Figure 4.2", 0.3))
)
