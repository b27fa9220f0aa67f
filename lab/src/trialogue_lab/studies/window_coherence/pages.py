"""Tables and the figure of the study: text of each network, exact rates by window and temperature."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from trialogue_lab.ledger import GOOD, QUIET, Cells, Rows, figure, largest, panels, result_table
from trialogue_lab.studies.window_coherence.config import SLIDING, UNLIMITED, cropped
from trialogue_lab.studies.window_coherence.statistics import (
    best_rates,
    corpus,
    lowest_temperature,
    names,
    rate,
    rates,
    text,
    windows,
    written,
)

_COROLLARY = "Potts chains, Corollary 1.2.1"
_RATE = "rate of leaving (nats per token)"
_SHADES = ("#82071e", "#cf222e", "#8250df", "#1f6feb", "#54aeff", "#0a3069")
"""Colours of the windows, shortest first."""


@result_table(
    "Text of each network",
    _COROLLARY,
    rows_are="network",
    note="temperature 1 unless said; in the pattern: no wall up to the horizon, measured and exact; first run: "
    "mean tokens up to the first wall or the horizon; ± one standard deviation over trainings",
)
def _text_table(rows: Rows) -> Cells:
    cold = lowest_temperature(rows)
    lines = {
        name: {
            "loss": text(name, "loss"),
            "in the pattern": text(name, "survival"),
            "exact": text(name, "exact_survival"),
            "first run": text(name, "mean_run"),
            "walls per token": text(name, "walls"),
            f"in the pattern, T = {cold:g}": text(name, "survival", cold),
            "in the pattern, T = 0": text(name, "survival", 0.0),
        }
        for name in names(rows)
    }
    return lines | {"the corpus": {"exact": corpus("survival")}}


@result_table(
    "Long-run rate of leaving a pattern, nats per token",
    _COROLLARY,
    rows_are="model",
    note="exact, by the largest eigenvalue of the chain that dies at the first wall; best: the corpus' own law of "
    "the next token given so many tokens; ± one standard deviation over trainings, of which a single one that did "
    "not learn can be most",
)
def _rates_table(rows: Rows) -> Cells:
    temperatures = sorted(rows["rate"].temperature.unique())
    heads = {f"T = {temperature:g}": temperature for temperature in temperatures}
    best = {head: best_rates(rows, temperature) for head, temperature in heads.items()}
    networks: Cells = {
        name: {head: rate(name, temperature) for head, temperature in heads.items()}
        for name in names(rows)[:-1]
    }
    return {
        **networks,
        **{
            f"best, {window} tokens": {head: float(series[window]) for head, series in best.items()}
            for window in best_rates(rows).index
        },
    }


@result_table(
    "How far survival is from its long-run rate at the horizon",
    _COROLLARY,
    rows_are="network",
    note="largest log ratio, over trainings and patterns, between how fast exact survival falls over the last "
    "measured window and the largest eigenvalue; where it is cold, it takes hundreds of tokens until survival "
    "falls at one rate",
)
def _late_table(rows: Rows) -> Cells:
    return {
        name: {
            f"T = {temperature:g}": largest(
                "rate", "late_error", where=f"model == {name!r} and temperature == {temperature}"
            )
            for temperature in sorted(rows["network"].temperature[rows["network"].temperature > 0].unique())
        }
        for name in names(rows)[:-1]
    }


@result_table(
    "The crossing length and the coherent length",
    "Potts chains, Theorem 1.1, equation 5",
    rows_are="network",
    note="temperature 1; E_max in nats; ± one standard deviation over trainings; N is the number of labels: "
    "patterns times phases",
)
def _bounds_table(rows: Rows) -> Cells:
    bounds = rows["bound"].pivot(index="seed", columns="model")
    return {
        name: {
            "E_max": bounds["max_energy"][name],
            "log10 L*": bounds["log_crossing"][name] / np.log(10),
            "log10 of the mean coherent length": -np.log10(rates(rows)[name]),
        }
        for name in names(rows)[:-1]
    }


TABLES = (_text_table, _rates_table, _late_table, _bounds_table)


def _colors(rows: Rows) -> dict[str, str]:
    shades = {cropped(window): _SHADES[place % len(_SHADES)] for place, window in enumerate(windows(rows))}
    return shades | {SLIDING: "#bf8700", UNLIMITED: GOOD}


def _survival(rows: Rows, axes: Axes) -> None:
    curves = rows["curve"]
    for name, color in _colors(rows).items():
        mean = curves[curves.model == name].groupby("token")[["survival", "exact_survival"]].mean()
        axes.plot(mean.index, mean.survival, "o", ms=3, color=color)
        axes.plot(mean.index, mean.exact_survival, color=color)
    axes.set(yscale="log", ylim=(1e-3, 1.3), title="Survival at temperature 1")
    axes.set(xlabel="tokens generated", ylabel="share still in its first pattern")


def _by_window(rows: Rows, axes: Axes) -> None:
    best, table = best_rates(rows), written(rows)
    axes.plot(best.index, best, ":", color=QUIET)
    seen = rows["bound"].groupby("model").window.first()
    for name, color in _colors(rows).items():
        if name == UNLIMITED:
            continue
        own = table[table.model == name]
        place = seen[name] + (0.35 if name == SLIDING else 0.0)
        for numbers, mark, size in ((rates(rows)[name], "_", 11), (own.late_ends / own.late_tokens, "o", 3)):
            axes.plot([place] * len(numbers), numbers, mark, ms=size, color=color)
    everything = table[table.model == UNLIMITED]
    unlimited = everything.late_ends.sum() / everything.late_tokens.sum()
    if unlimited > 0:
        axes.axhline(unlimited, ls="--", color=GOOD, label="unlimited attention, measured")
    itself = corpus("rate")(rows).item()
    axes.axhline(itself, color=QUIET, label="the corpus itself, exact: noise of the measure")
    axes.set(yscale="log", xlabel="tokens the model sees", ylabel=_RATE, title="Rate by what is seen")
    axes.legend(loc="center left")


def _by_temperature(rows: Rows, axes: Axes) -> None:
    logs = rows["rate"].assign(log=rows["rate"].rate.apply(np.log))
    means = logs.groupby(["model", "temperature"]).log.mean().apply(np.exp)
    best = rows["best"].set_index("temperature")
    for name, color in _colors(rows).items():
        if name != UNLIMITED:
            axes.plot(1 / means[name].index.to_numpy(dtype=float), means[name], color=color)
    for window in windows(rows):
        rates_of_best = best.rate[best.window == window]
        cold = 1 / rates_of_best.index.to_numpy(dtype=float)
        axes.plot(cold, rates_of_best, ":", color=_colors(rows)[cropped(window)])
    axes.set(yscale="log", xlabel="1 / temperature", ylabel=_RATE, title="Exact rates against temperature")


@figure(
    "coherence",
    "Small transformers trained on two stored patterns of period 7 with noise continue one of them. Left: "
    "share of the texts without a domain wall, measured, and exact for what sees a finite window; mean over "
    "trainings. Middle: the long-run rate of leaving against the tokens that the network sees, for each training "
    "(sliding attention a little to the right of its receptive field). Right: the same against the inverse "
    "temperature, geometric mean over trainings; a window of 3 tokens belongs to both patterns, and cold is no "
    "help.",
)
def _coherence_figure(rows: Rows) -> Drawing:
    drawing, axes = panels(3, height=4.3)
    for one, draw in zip(axes, (_survival, _by_window, _by_temperature), strict=True):
        draw(rows, one)
    shown = [Line2D([], [], color=color, lw=3, label=name) for name, color in _colors(rows).items()]
    shown += [
        Line2D([], [], color=QUIET, marker="o", ms=3, ls="", label="measured"),
        Line2D([], [], color=QUIET, label="exact"),
        Line2D([], [], color=QUIET, ls=":", label="best model with that window"),
    ]
    drawing.legend(handles=shown, loc="outside lower center", ncols=len(shown))
    return drawing


FIGURES = (_coherence_figure,)
