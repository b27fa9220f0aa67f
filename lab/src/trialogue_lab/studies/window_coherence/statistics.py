"""Statistics of the study: numbers per training, and exact numbers of models without training."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.window_coherence.config import SLIDING, UNLIMITED, cropped

trainings = Replication("training", "seeds")


def windows(rows: Rows) -> list[int]:
    """Return the windows of the cropped networks in ascending order."""
    table = rows["bound"]
    return sorted(table.window[table.model != SLIDING].unique().tolist())


def names(rows: Rows) -> list[str]:
    """Return the names of the networks: cropped ones by window, sliding and unlimited attention."""
    return [*map(cropped, windows(rows)), SLIDING, UNLIMITED]


def distinguishing(rows: Rows) -> list[str]:
    """Return the networks whose window distinguishes the patterns: all cropped ones except the shortest window."""
    return list(map(cropped, windows(rows)[1:]))


def text_rows(rows: Rows, temperature: float = 1.0) -> DataFrame:
    """Return the measurements of generated text at one temperature."""
    return rows.where("network", temperature=temperature)


def rates(rows: Rows, temperature: float = 1.0) -> DataFrame:
    """Return exact decay rates of networks with a window, by seed (index) and network (columns)."""
    return rows.where("rate", temperature=temperature).pivot(index="seed", columns="model", values="rate")


def best_rates(rows: Rows, temperature: float = 1.0) -> "Series[float]":
    """Return exact decay rates of the best models with a window, by window."""
    return rows.where("best", temperature=temperature).set_index("window").rate.sort_index()


def lowest_temperature(rows: Rows) -> float:
    """Return the lowest positive temperature at which text was generated."""
    temperatures = rows["network"].temperature
    return float(temperatures[temperatures > 0].min())


@exact
def corpus(rows: Rows, column: str) -> float:
    """Return an exact number of the corpus: its rate, or its survival to the horizon."""
    return float(rows["corpus"][column].iloc[0])


@exact
def decades_beyond_crossing(rows: Rows) -> float:
    """Return the largest log10 ratio of a mean coherent length to the crossing length of the network."""
    both = rows["rate"].query("temperature == 1").merge(rows["bound"], on=["model", "seed"])
    return float((-np.log(both.rate) - both.log_crossing).max() / np.log(10))


@exact
def best_step(rows: Rows) -> float:
    """Return the smallest log ratio of rates of successive best models, from the shortest trained window on."""
    best = best_rates(rows).loc[windows(rows)[0] :]
    return float((-np.diff(np.log(best.to_numpy()))).min())


@trainings
def text(rows: Rows, model: str, column: str, temperature: float = 1.0) -> "Series[float]":
    """Return a measurement of the text of one network."""
    return rows.where("network", temperature=temperature, model=model).set_index("seed")[column]


@trainings
def unlimited_gain(rows: Rows) -> "Series[float]":
    """Return the survival to the horizon with unlimited attention, minus that with the longest window."""
    survival = text_rows(rows).pivot(index="seed", columns="model", values="survival")
    return survival[UNLIMITED] - survival[cropped(windows(rows)[-1])]


@trainings
def measured_rate_error(rows: Rows) -> "Series[float]":
    """Return the log ratio of measured walls to walls expected from exact rates, pooled over windows.

    Walls are counted after the first measured window.
    """
    setting = ["model", "seed", "temperature"]
    table = text_rows(rows).dropna(subset="window").merge(rows["rate"][[*setting, "rate"]], on=setting)
    expected = (-np.expm1(-table.rate) * table.late_tokens).groupby(table.seed).sum()
    return (table.groupby("seed").late_ends.sum() / expected).apply(np.log)


@trainings
def mean_run_error(rows: Rows) -> "Series[float]":
    """Return the log ratio of measured to exact mean runs up to a wall or the horizon, averaged over windows."""
    table = text_rows(rows).dropna(subset="window")
    return (table.mean_run / table.exact_mean_run).apply(np.log).groupby(table.seed).mean()


@trainings
def longer(rows: Rows, first: int | None = None, last: int | None = None) -> "Series[float]":
    """Return the smallest log ratio of rates between successive windows, over a slice of the steps."""
    found = rates(rows)[list(map(cropped, windows(rows)))]
    steps = (found.shift(1, axis=1) / found).iloc[:, 1:].iloc[:, first:last]
    return steps.apply(np.log).min(axis=1)


@trainings
def colder(rows: Rows, tells: bool) -> "Series[float]":
    """Return the smallest log ratio of rates at temperature 1 to rates at the lowest temperature.

    The networks are those whose window distinguishes the patterns if `tells` is true, and the shortest window
    otherwise.
    """
    models = distinguishing(rows) if tells else [cropped(windows(rows)[0])]
    ratios = rates(rows)[models] / rates(rows, lowest_temperature(rows))[models]
    return ratios.apply(np.log).min(axis=1)


@trainings
def above_best(rows: Rows, sliding: bool) -> "Series[float]":
    """Return the log ratio of rates of networks to rates of the best models with the same window.

    It is computed for sliding attention, or averaged over windows that distinguish the patterns.
    """
    models = [SLIDING] if sliding else distinguishing(rows)
    seen = rows["bound"].groupby("model").window.first()[models]
    ratios = rates(rows)[models].div(best_rates(rows)[seen].to_numpy(), axis=1)
    return ratios.apply(np.log).mean(axis=1)


@trainings
def greedy_survival(rows: Rows) -> "Series[float]":
    """Return the smallest share of patterns that greedy decoding follows up to the horizon.

    Only networks whose window distinguishes the patterns count.
    """
    survival = text_rows(rows, 0.0).pivot(index="seed", columns="model", values="survival")
    return survival[distinguishing(rows)].min(axis=1)
