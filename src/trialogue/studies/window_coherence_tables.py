"""Tables of the study `window-coherence`: what was measured of each network, and exact rates by temperature."""

from typing import Any

import numpy as np
from pandas import DataFrame

from trialogue.ledger import Table
from trialogue.studies.rows import kind
from trialogue.studies.window_coherence_rows import (
    best_rates,
    corpus,
    lowest_temperature,
    names,
    networks,
    rates,
)

_COROLLARY = "Potts chains, Corollary 1.2.1"


def _text(rows: DataFrame, how: str) -> DataFrame:
    cold = lowest_temperature(rows)
    lines: dict[str, dict[str, Any]] = {}
    for name in names(rows):
        warm, chosen = networks(rows, 1.0, name), networks(rows, cold, name)
        lines[name] = {
            "loss": warm.loss.agg(how),
            "in the pattern": warm.survival.agg(how),
            "exact": warm.get("exact_survival", DataFrame(dtype=float)).agg(how)
            if _windowed(warm)
            else np.nan,
            "first run": warm.mean_run.agg(how),
            "walls per token": warm.walls.agg(how),
            f"in the pattern, T = {cold:g}": chosen.survival.agg(how),
            "in the pattern, T = 0": networks(rows, 0.0, name).survival.agg(how),
        }
    if how == "mean":
        lines["the corpus"] = {"in the pattern": np.nan, "exact": float(corpus(rows).survival)}
    return DataFrame.from_dict(lines, orient="index")


def _windowed(chosen: DataFrame) -> bool:
    return "exact_survival" in chosen and bool(chosen.exact_survival.notna().all())


def _rates(rows: DataFrame) -> DataFrame:
    return _by_temperature(rows, "mean")


def _by_temperature(rows: DataFrame, how: str) -> DataFrame:
    temperatures = sorted(kind(rows, "rate").temperature.unique())
    columns: dict[str, Any] = {}
    for temperature in temperatures:
        found, best = rates(rows, temperature), best_rates(rows, temperature)
        cells = found.agg(how).to_dict()
        if how == "mean":
            cells |= {f"best, {window} tokens": rate for window, rate in best.items()}
        columns[f"T = {temperature:g}"] = cells
    frame = DataFrame(columns)
    order = [name for name in names(rows) if name in frame.index]
    return frame.loc[[*order, *(label for label in frame.index if label not in order)]]


def _late(rows: DataFrame) -> DataFrame:
    chosen = kind(rows, "rate").dropna(subset="late_error")
    found = chosen.pivot_table(index="model", columns="temperature", values="late_error", aggfunc="max")
    found.columns = [f"T = {temperature:g}" for temperature in found.columns]
    return found.loc[[name for name in names(rows) if name in found.index]]


def _bounds(rows: DataFrame) -> DataFrame:
    chosen = kind(rows, "bound").groupby("model")[["max_energy", "log_crossing"]].mean()
    lines = {
        name: {
            "E_max": chosen.max_energy[name],
            "log10 L*": chosen.log_crossing[name] / np.log(10),
            "log10 of the mean coherent length": float(-np.log10(rates(rows)[name]).mean()),
        }
        for name in names(rows)
        if name in chosen.index
    }
    return DataFrame.from_dict(lines, orient="index")


TABLES = (
    Table(
        title="Text of each network",
        source=_COROLLARY,
        ours=lambda rows: _text(rows, "mean"),
        deviation=lambda rows: _text(rows, "std"),
        rows_are="network",
        note="temperature 1 unless said; in the pattern: no wall up to the horizon, measured and exact; first run: "
        "mean tokens up to the first wall or the horizon; ± one standard deviation over trainings",
    ),
    Table(
        title="Long-run rate of leaving a pattern, nats per token",
        source=_COROLLARY,
        ours=_rates,
        deviation=lambda rows: _by_temperature(rows, "std"),
        rows_are="model",
        note="exact, by the largest eigenvalue of the chain that dies at the first wall; best: the corpus' own law of "
        "the next token given so many tokens",
    ),
    Table(
        title="How far survival is from its long-run rate at the horizon",
        source=_COROLLARY,
        ours=_late,
        rows_are="network",
        note="largest log ratio, over trainings and patterns, between how fast exact survival falls over the last "
        "measured window and the largest eigenvalue; where it is cold, it takes hundreds of tokens until survival "
        "falls at one rate",
    ),
    Table(
        title="The crossing length and the coherent length",
        source="Potts chains, Theorem 1.1, equation 5",
        ours=_bounds,
        rows_are="network",
        note="temperature 1; E_max in nats, mean over trainings; N is the number of labels: patterns times phases",
    ),
)
