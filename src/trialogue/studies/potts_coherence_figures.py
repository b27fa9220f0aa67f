"""The figures of the study `potts-coherence`: walls against length, runs against temperature, order in the plane."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from pandas import DataFrame

from trialogue.ledger import Figure
from trialogue.studies.potts_coherence_chains import PLANTED, SHARED, UNIFORM
from trialogue.studies.potts_coherence_plane import PLANE, RING
from trialogue.studies.potts_coherence_rows import chain_label, family, number_of_spins
from trialogue.studies.rows import kind

_COLORS = ("#1f6feb", "#cf222e", "#1a7f37", "#bf8700")
_GRAY = "#57606a"


def _draw_walls(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(11.6, 4.0), layout="constrained")
    left, middle, right = drawing.subplots(1, 3)
    _walls_against_length(left, rows)
    _runs_against_temperature(middle, rows)
    _one_wall(right, rows)
    for axes in (left, middle, right):
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
    return drawing


def _walls_against_length(axes: Any, rows: DataFrame) -> None:
    sampled = kind(rows, "sampled")
    index = ["patterns", "window", "temperature"]
    curves = kind(rows, "curve")
    settings = curves[index].drop_duplicates().itertuples(index=False, name=None)
    for color, key in zip(_COLORS, settings, strict=False):
        curve = curves[(curves[index] == list(key)).all(axis=1)]
        label = chain_label(*key)
        axes.plot(curve.length, curve.wall, color=color, lw=1.2, label=label)
        own = sampled[(sampled[index] == list(key)).all(axis=1)].groupby("length")
        for column, mark in (("drawn", "o"), ("gibbs", "x")):
            axes.errorbar(
                own[column].mean().index,
                own[column].mean(),
                own[column].std(),
                fmt=mark,
                ms=6,
                color=color,
                mfc="none",
            )
        crossing = own[column].mean().index[1]
        axes.axvline(crossing, color=color, lw=0.8, ls=":")
    axes.set(xscale="log", xlabel="length L", ylabel="P(at least one wall)")
    axes.set_title("Walls appear at L* (dotted)", fontsize=10, loc="left")
    axes.legend(fontsize=8)


def _runs_against_temperature(axes: Any, rows: DataFrame) -> None:
    chosen = family(rows, "length", UNIFORM)
    longest = chosen.length.max()
    patterns = chosen.patterns.max()
    chosen = chosen[(chosen.length == longest) & (chosen.patterns == patterns)]
    crossing = family(rows, "chain", UNIFORM)
    for color, (window, runs) in zip(_COLORS, chosen.groupby("window"), strict=False):
        axes.plot(runs.temperature, runs.run, "o-", ms=4, color=color, lw=1.2, label=f"W = {window:g}")
        own = crossing[(crossing.window == window) & (crossing.patterns == patterns)]
        axes.plot(own.temperature, own.crossing_length, color=color, lw=1.2, ls=":")
    axes.plot([], [], color=_GRAY, lw=1.2, ls=":", label="L* of equation 5")
    axes.set(xscale="log", yscale="log", ylim=(1, 3 * longest), ylabel="tokens")
    axes.axhline(longest, color=_GRAY, lw=0.8, ls="--")
    _temperature_axis(axes, chosen)
    axes.set_title(f"First coherent run, N = {patterns:g}, L = {longest:g}", fontsize=10, loc="left")
    axes.legend(fontsize=8)


def _one_wall(axes: Any, rows: DataFrame) -> None:
    chosen = kind(rows, "length")
    chosen = chosen[(chosen.length == chosen.length.max()) & (chosen.patterns > 1)]
    names = (UNIFORM, PLANTED, SHARED)
    for color, name, shift in zip(_COLORS, names, (0.94, 1.0, 1.06), strict=False):
        own = chosen[chosen.family == name]
        slack = (own.free_energy_bound - own.free_energy) / own.temperature
        axes.plot(own.temperature * shift, slack, "o", ms=4, color=color, mfc="none", label=name)
    axes.axhline(0, color="black", lw=1)
    axes.set(xscale="log", yscale="symlog")
    _temperature_axis(axes, chosen)
    axes.set_title("Bound (5) less the exact ΔF, in units of T", fontsize=10, loc="left")
    axes.legend(fontsize=8)


def _temperature_axis(axes: Any, rows: DataFrame) -> None:
    temperatures = sorted(rows.temperature.unique().tolist())
    axes.set_xticks(temperatures, [f"{temperature:g}" for temperature in temperatures])
    axes.minorticks_off()
    axes.set_xlabel("temperature")


def _draw_plane(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(7.6, 4.2), layout="constrained")
    axes = drawing.subplots()
    exact, order = kind(rows, "onsager"), kind(rows, "order").iloc[0]
    axes.plot(exact.temperature, exact.magnetisation, color=_GRAY, lw=1.4, label="plane, exact (Onsager)")
    bound = exact[exact.bound > 0]
    axes.plot(
        bound.temperature,
        bound.bound,
        color=_GRAY,
        lw=1.2,
        ls="--",
        label="plane, bound by Peierls' argument",
    )
    spins = kind(rows, "spins")
    for color, shape in ((_COLORS[0], PLANE), (_COLORS[1], RING)):
        for mark, side in zip("so^", sorted(spins.side.unique().tolist()), strict=False):
            own = spins[(spins["shape"] == shape) & (spins.side == side)]
            found = own.groupby("temperature").magnetisation
            axes.errorbar(
                found.mean().index,
                found.mean(),
                found.std(),
                fmt=mark,
                ms=6,
                mfc="none",
                color=color,
                label=f"{shape}, {number_of_spins(side)}",
            )
    for place, name in ((order.critical, "T_c"), (order.peierls, "E_min / log 3")):
        axes.axvline(place, color=_GRAY, lw=0.8, ls=":")
        axes.text(place + 0.03, 0.55, name, color=_GRAY, fontsize=8, rotation=90, va="center")
    axes.axhline(0, color=_GRAY, lw=0.5)
    axes.set(xlabel="temperature in units of J", ylabel="magnetisation per spin", xlim=(0, None))
    axes.set_ylim(min(-0.1, float(np.nanmin(spins.magnetisation)) - 0.05), 1.08)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(0.0, 0.42))
    axes.grid(color="#dddddd", lw=0.6)
    axes.set_axisbelow(True)
    return drawing


FIGURES = (
    Figure(
        name="walls",
        caption="Left: probability of a wall against the length, exact (lines), exact samples (circles) and Gibbs "
        "sampling that begins in a stored pattern (crosses); error bars are standard deviations over seeds. Middle: "
        "the mean first coherent run, exact, beside the crossing length L* of equation 5; the dashed line is the "
        "chain's length. Right: how much equation 5 overestimates the free energy of a single wall; below zero "
        "it is no bound.",
        draw=_draw_walls,
    ),
    Figure(
        name="plane",
        caption="Magnetisation after the sweeps from all spins up: on a torus, and on a ring of as many spins at the "
        "same temperatures; error bars are standard deviations over seeds.",
        draw=_draw_plane,
    ),
)
