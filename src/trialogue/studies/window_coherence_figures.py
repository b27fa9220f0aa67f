"""The figure of the study `window-coherence`: survival in one pattern, and its rate by window and temperature."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from pandas import DataFrame

from trialogue.ledger import Figure
from trialogue.studies.rows import kind
from trialogue.studies.window_coherence_rows import (
    SLIDING,
    UNLIMITED,
    best_rates,
    corpus,
    cropped,
    names,
    networks,
    rates,
    windows,
)

_SLIDING, _UNLIMITED, _GRAY = "#bf8700", "#1a7f37", "#57606a"
_WINDOWS = ("#82071e", "#cf222e", "#8250df", "#1f6feb", "#54aeff", "#0a3069")


def _colors(rows: DataFrame) -> dict[str, str]:
    shades = {cropped(window): _WINDOWS[place % len(_WINDOWS)] for place, window in enumerate(windows(rows))}
    return shades | {SLIDING: _SLIDING, UNLIMITED: _UNLIMITED}


def _survival(rows: DataFrame, axes: Any) -> None:
    curves, colors = kind(rows, "curve"), _colors(rows)
    for name in names(rows):
        own = curves[curves.model == name].groupby("token")
        mean = own.survival.mean()
        axes.plot(mean.index, mean, "o", ms=3, color=colors[name])
        if name != UNLIMITED:
            exact = own.exact_survival.mean()
            axes.plot(exact.index, exact, lw=1, color=colors[name])
    axes.set(
        yscale="log", ylim=(1e-3, 1.3), xlabel="tokens generated", ylabel="share still in its first pattern"
    )
    axes.set_title("Survival at temperature 1", fontsize=10, loc="left")


def _by_window(rows: DataFrame, axes: Any) -> None:
    found, best, colors = rates(rows), best_rates(rows), _colors(rows)
    axes.plot(best.index, best, ":", lw=1.4, color=_GRAY)
    for name in names(rows):
        if name == UNLIMITED:
            continue
        chosen = networks(rows, 1.0, name).set_index("seed")
        window = int(chosen.window.iloc[0])
        measured = chosen.late_ends / chosen.late_tokens
        near = window + (0.35 if name == SLIDING else 0.0)
        axes.plot([near] * len(found), found[name], "_", ms=11, mew=1.4, color=colors[name])
        axes.plot([near] * len(measured), measured, "o", ms=3, color=colors[name])
    everything = networks(rows, 1.0, UNLIMITED)
    unlimited = everything.late_ends.sum() / everything.late_tokens.sum()
    if unlimited > 0:
        axes.axhline(unlimited, ls="--", lw=1, color=_UNLIMITED, label="unlimited attention, measured")
    axes.axhline(corpus(rows).rate, lw=1, color=_GRAY, label="the corpus itself, exact: noise of the measure")
    axes.set(yscale="log", xlabel="tokens the model sees", ylabel="rate of leaving (nats per token)")
    axes.legend(fontsize=7.5, loc="center left")
    axes.set_title("Rate by what is seen", fontsize=10, loc="left")


def _by_temperature(rows: DataFrame, axes: Any) -> None:
    chosen, colors = kind(rows, "rate"), _colors(rows)
    means = chosen.groupby(["model", "temperature"]).rate.mean()
    best = kind(rows, "best")
    for name in names(rows):
        if name == UNLIMITED:
            continue
        own = means[name]
        axes.plot(1 / np.asarray(own.index), own, lw=1, color=colors[name])
        window = int(networks(rows, 1.0, name).window.iloc[0])
        ideal = best[best.window == window].set_index("temperature").rate
        if name != SLIDING and len(ideal):
            axes.plot(1 / np.asarray(ideal.index), ideal, ls=":", lw=1, color=colors[name])
    axes.set(yscale="log", xlabel="1 / temperature", ylabel="rate of leaving (nats per token)")
    axes.set_title("Exact rates against temperature", fontsize=10, loc="left")


def _draw(rows: DataFrame) -> Drawing:
    drawing = Drawing(figsize=(13.2, 4.3), layout="constrained")
    for axes, draw in zip(drawing.subplots(1, 3), (_survival, _by_window, _by_temperature), strict=True):
        draw(rows, axes)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_axisbelow(True)
    shown = [Line2D([], [], color=color, lw=3, label=name) for name, color in _colors(rows).items()]
    shown += [
        Line2D([], [], color=_GRAY, marker="o", ms=3, ls="", label="measured"),
        Line2D([], [], color=_GRAY, lw=1, label="exact"),
        Line2D([], [], color=_GRAY, lw=1, ls=":", label="best model with that window"),
    ]
    drawing.legend(handles=shown, loc="outside lower center", ncols=len(shown), fontsize=8, frameon=False)
    return drawing


FIGURES = (
    Figure(
        name="coherence",
        caption="Small transformers trained on two stored patterns of period 7 with noise continue one of them. Left: "
        "share of the texts without a domain wall, measured, and exact for what sees a finite window; mean over "
        "trainings. Middle: the long-run rate of leaving against the tokens that the network sees, for each training "
        "(sliding attention a little to the right of its receptive field). Right: the same against the inverse "
        "temperature; a window of 3 tokens belongs to both patterns, and cold is no help.",
        draw=_draw,
    ),
)
