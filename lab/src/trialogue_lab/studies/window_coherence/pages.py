"""Tables and the figure of the study: text of each network, and exact rates by window and temperature."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from trialogue_lab.ledger import GOOD, QUIET, Cells, Rows, figure, panels, result_table
from trialogue_lab.studies.window_coherence import statistics
from trialogue_lab.studies.window_coherence.config import SLIDING, UNLIMITED, cropped
from trialogue_lab.studies.window_coherence.statistics import (
    list_networks,
    list_windows,
    select_best_rates,
    select_rates,
    text,
)

_RATE = "decay rate (nats per token)"
# Colors of the networks by context length, in ascending order.
_SHADES = ("#82071e", "#cf222e", "#8250df", "#1f6feb", "#54aeff", "#0a3069")


@result_table(
    "Text of each network",
    "Potts chains, Corollary 1.2.1",
    row_heading="network",
    note="At temperature 1 unless noted. Survival: share of texts without a wall up to the horizon, measured or exact. "
    "First run: mean tokens up to the first wall or the horizon. ± one standard deviation over trainings.",
)
def _text_table(rows: Rows) -> Cells:
    cold = statistics.find_lowest_temperature(rows)
    lines = {
        name: {
            "loss": text(name, "loss"),
            "survival": text(name, "survival"),
            "survival, exact": text(name, "exact_survival"),
            "first run": text(name, "mean_run"),
            "walls per token": text(name, "walls"),
            f"survival, T = {cold:g}": text(name, "survival", cold),
            "survival, T = 0": text(name, "survival", 0.0),
        }
        for name in list_networks(rows)
    }
    return lines | {"the corpus": {"survival, exact": statistics.corpus("survival")}}


@result_table(
    "The crossing length and the coherent length",
    "Potts chains, Theorem 1.1, equation 5",
    row_heading="network",
    note="At temperature 1. E_max is in nats. ± one standard deviation over trainings. N is the number of labels "
    "(patterns times phases).",
)
def _bounds_table(rows: Rows) -> Cells:
    bounds = rows["bound"].pivot(index="seed", columns="model")
    return {
        name: {
            "E_max": bounds["max_energy"][name],
            "log10 L*": bounds["log_crossing"][name] / np.log(10),
            "log10 of the mean coherent length": -np.log10(select_rates(rows)[name]),
        }
        for name in list_networks(rows)[:-1]
    }


TABLES = (_text_table, _bounds_table)


def _assign_colors(rows: Rows) -> dict[str, str]:
    shades = {
        cropped(window): _SHADES[place % len(_SHADES)] for place, window in enumerate(list_windows(rows))
    }
    return shades | {SLIDING: "#bf8700", UNLIMITED: GOOD}


def _draw_survival(rows: Rows, axes: Axes) -> None:
    curves = rows["curve"]
    for name, color in _assign_colors(rows).items():
        mean = curves[curves.model == name].groupby("token")[["survival", "exact_survival"]].mean()
        axes.plot(mean.index, mean.survival, "o", ms=3, color=color)
        axes.plot(mean.index, mean.exact_survival, color=color)
    axes.set(yscale="log", ylim=(1e-3, 1.3), title="Survival at temperature 1")
    axes.set(xlabel="generated tokens", ylabel="share without a wall")


def _draw_rates_by_window(rows: Rows, axes: Axes) -> None:
    best, table = select_best_rates(rows), statistics.select_text_rows(rows)
    axes.plot(best.index, best, ":", color=QUIET)
    seen = rows["bound"].groupby("model").window.first()
    for name, color in _assign_colors(rows).items():
        if name == UNLIMITED:
            continue
        own = table[table.model == name]
        place = seen[name] + (0.35 if name == SLIDING else 0.0)
        for numbers, mark, size in (
            (select_rates(rows)[name], "_", 11),
            (own.late_ends / own.late_tokens, "o", 3),
        ):
            axes.plot([place] * len(numbers), numbers, mark, ms=size, color=color)
    everything = table[table.model == UNLIMITED]
    unlimited = everything.late_ends.sum() / everything.late_tokens.sum()
    if unlimited > 0:
        axes.axhline(unlimited, ls="--", color=GOOD, label="unlimited attention, measured")
    rate = statistics.corpus("rate")(rows).item()
    axes.axhline(rate, color=QUIET, label="corpus, exact (noise of the measure)")
    axes.set(yscale="log", xlabel="visible tokens", ylabel=_RATE, title="Decay rates by visible tokens")
    axes.legend(loc="center left")


def _draw_rates_by_temperature(rows: Rows, axes: Axes) -> None:
    logs = rows["rate"].assign(log=rows["rate"].rate.apply(np.log))
    means = logs.groupby(["model", "temperature"]).log.mean().apply(np.exp)
    best = rows["best"].set_index("temperature")
    for name, color in _assign_colors(rows).items():
        if name != UNLIMITED:
            axes.plot(1 / means[name].index.to_numpy(dtype=float), means[name], color=color)
    for window in list_windows(rows):
        rates_of_best = best.rate[best.window == window]
        cold = 1 / rates_of_best.index.to_numpy(dtype=float)
        axes.plot(cold, rates_of_best, ":", color=_assign_colors(rows)[cropped(window)])
    axes.set(yscale="log", xlabel="1 / temperature", ylabel=_RATE, title="Exact decay rates by temperature")


@figure(
    "coherence",
    "Small transformers trained on two noisy stored patterns of period 7 continue one of them. Left: share of texts "
    "without a domain wall, measured, and exact for finite windows. Means over trainings. Middle: long-run decay rate "
    "by number of visible tokens, for each training. Sliding attention is drawn slightly to the right of its receptive "
    "field. Right: decay rate by inverse temperature, geometric mean over trainings. A window of 3 tokens occurs in "
    "both patterns, and low temperatures do not help.",
)
def _coherence_figure(rows: Rows) -> Drawing:
    drawing, (left, middle, right) = panels(3, height=4.3)
    _draw_survival(rows, left)
    _draw_rates_by_window(rows, middle)
    _draw_rates_by_temperature(rows, right)
    shown = [Line2D([], [], color=color, lw=3, label=name) for name, color in _assign_colors(rows).items()]
    shown += [
        Line2D([], [], color=QUIET, marker="o", ms=3, ls="", label="measured"),
        Line2D([], [], color=QUIET, label="exact"),
        Line2D([], [], color=QUIET, ls=":", label="best model with this window"),
    ]
    drawing.legend(handles=shown, loc="outside lower center", ncols=len(shown))
    return drawing


FIGURES = (_coherence_figure,)
