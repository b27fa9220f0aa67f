"""Quantities of the study: one number per training of the networks, or exact ones of the models that need none."""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.window_coherence.config import SLIDING, UNLIMITED, cropped

trainings = Replication("training", "seeds")


def windows(rows: Rows) -> list[int]:
    """The windows of the cropped networks, shortest first."""
    table = rows["bound"]
    return sorted(table.window[table.model != SLIDING].unique().tolist())


def names(rows: Rows) -> list[str]:
    """The networks: cropped ones, shortest window first, then the other two."""
    return [*map(cropped, windows(rows)), SLIDING, UNLIMITED]


def telling(rows: Rows) -> list[str]:
    """The networks whose window tells the patterns apart: cropped ones, but for the shortest window."""
    return list(map(cropped, windows(rows)[1:]))


def written(rows: Rows, temperature: float = 1.0) -> DataFrame:
    """What was measured of the text of the networks at one temperature."""
    return rows.where("network", temperature=temperature)


def rates(rows: Rows, temperature: float = 1.0) -> DataFrame:
    """Exact decay rates of the networks with a window, by seed (index) and model (columns)."""
    return rows.where("rate", temperature=temperature).pivot(index="seed", columns="model", values="rate")


def best_rates(rows: Rows, temperature: float = 1.0) -> "Series[float]":
    """Exact decay rates of the best models with a window, by window."""
    return rows.where("best", temperature=temperature).set_index("window").rate.sort_index()


def lowest_temperature(rows: Rows) -> float:
    """The lowest temperature above zero at which text was generated."""
    temperatures = rows["network"].temperature
    return float(temperatures[temperatures > 0].min())


@exact
def corpus(rows: Rows, column: str) -> float:
    """What is exact of the corpus itself: its rate, or its survival to the horizon."""
    return float(rows["corpus"][column].iloc[0])


@exact
def decades_beyond_crossing(rows: Rows) -> float:
    """Most decades by which the mean coherent length of a network exceeds its crossing length."""
    both = rows["rate"].query("temperature == 1").merge(rows["bound"], on=["model", "seed"])
    return float((-np.log(both.rate) - both.log_crossing).max() / np.log(10))


@exact
def best_step(rows: Rows) -> float:
    """Least log ratio between the best models with a window and with one token more, from the shortest trained one."""
    best = best_rates(rows).loc[windows(rows)[0] :]
    return float((-np.diff(np.log(best.to_numpy()))).min())


@trainings
def text(rows: Rows, model: str, column: str, temperature: float = 1.0) -> "Series[float]":
    """What was measured of the text of one network."""
    return rows.where("network", temperature=temperature, model=model).set_index("seed")[column]


@trainings
def rate(rows: Rows, model: str, temperature: float = 1.0) -> "Series[float]":
    """The exact decay rate of a network, nats per token."""
    return rates(rows, temperature)[model]


@trainings
def unlimited_gain(rows: Rows) -> "Series[float]":
    """Survival to the horizon with unlimited attention less that with the longest window."""
    survival = written(rows).pivot(index="seed", columns="model", values="survival")
    return survival[UNLIMITED] - survival[cropped(windows(rows)[-1])]


@trainings
def measured_rate_error(rows: Rows) -> "Series[float]":
    """Log of the walls behind the first measured window over those that the exact rate gives, all windows together."""
    setting = ["model", "seed", "temperature"]
    table = written(rows).dropna(subset="window").merge(rows["rate"][[*setting, "rate"]], on=setting)
    expected = (-np.expm1(-table.rate) * table.late_tokens).groupby(table.seed).sum()
    return (table.groupby("seed").late_ends.sum() / expected).apply(np.log)


@trainings
def mean_run_error(rows: Rows) -> "Series[float]":
    """Log of the mean tokens up to the first wall or the horizon, measured over exact, mean over finite windows."""
    table = written(rows).dropna(subset="window")
    return (table.mean_run / table.exact_mean_run).apply(np.log).groupby(table.seed).mean()


@trainings
def longer(rows: Rows, first: int | None = None, last: int | None = None) -> "Series[float]":
    """The least log ratio between the rates of a window and the next longer one, over a slice of these steps."""
    found = rates(rows)[list(map(cropped, windows(rows)))]
    steps = (found.shift(1, axis=1) / found).iloc[:, 1:].iloc[:, first:last]
    return steps.apply(np.log).min(axis=1)


@trainings
def colder(rows: Rows, tells: bool) -> "Series[float]":
    """The least log ratio between the rates at temperature 1 and at the lowest one.

    Over the windows that tell the patterns apart, all but the shortest, or of the shortest.
    """
    models = telling(rows) if tells else [cropped(windows(rows)[0])]
    ratios = rates(rows)[models] / rates(rows, lowest_temperature(rows))[models]
    return ratios.apply(np.log).min(axis=1)


@trainings
def above_best(rows: Rows, sliding: bool) -> "Series[float]":
    """Log ratio of the rates of networks and of the best models that see as much.

    Of sliding attention, or the mean over the windows that tell the patterns apart.
    """
    models = [SLIDING] if sliding else telling(rows)
    seen = rows["bound"].groupby("model").window.first()[models]
    ratios = rates(rows)[models].div(best_rates(rows)[seen].to_numpy(), axis=1)
    return ratios.apply(np.log).mean(axis=1)


@trainings
def greedy_survival(rows: Rows) -> "Series[float]":
    """Share of patterns that greedy decoding holds to the horizon, least over networks whose window tells."""
    survival = written(rows, 0.0).pivot(index="seed", columns="model", values="survival")
    return survival[telling(rows)].min(axis=1)
