"""Statistics of the study about how long generated text follows a stored pattern.

Sequences of the corpus follow one of several periodic patterns, with noise. A network sees a window of previous tokens.
A wall is a place where its text changes from one pattern to another, and the decay rate is the rate of walls per token
in long texts. The horizon is the length of the generated text.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.window_coherence.config import SLIDING, UNLIMITED, cropped

trainings = Replication("training", "seeds")


def windows(rows: Rows) -> list[int]:
    """Return the numbers of previous tokens that the networks with a cropped context see, in ascending order."""
    table = rows["bound"]
    return sorted(table.window[table.model != SLIDING].unique().tolist())


def names(rows: Rows) -> list[str]:
    """Return the names of the networks.

    Networks with a cropped context come first, by window. Sliding and unlimited attention follow.
    """
    return [*map(cropped, windows(rows)), SLIDING, UNLIMITED]


def distinguishing(rows: Rows) -> list[str]:
    """Return the networks that see enough tokens to distinguish the patterns.

    These are all networks with a cropped context except the one with the shortest window.
    """
    return list(map(cropped, windows(rows)[1:]))


def text_rows(rows: Rows, temperature: float = 1.0) -> DataFrame:
    """Return the measurements of generated text at one temperature.

    Args:
        rows: Measured rows of a run, by kind.
        temperature: Sampling temperature.

    Returns:
        One row per seed and network.
    """
    return rows.where("network", temperature=temperature)


def rates(rows: Rows, temperature: float = 1.0) -> DataFrame:
    """Return the exact rates at which texts leave a pattern, in nats per token, for networks with a window.

    Args:
        rows: Measured rows of a run, by kind.
        temperature: Sampling temperature.

    Returns:
        One row per training seed and one column per network.
    """
    return rows.where("rate", temperature=temperature).pivot(index="seed", columns="model", values="rate")


def best_rates(rows: Rows, temperature: float = 1.0) -> "Series[float]":
    """Return the exact rates at which texts of optimal models leave a pattern, in nats per token.

    Args:
        rows: Measured rows of a run, by kind.
        temperature: Sampling temperature.

    Returns:
        One rate per number of previous tokens that the model sees.
    """
    return rows.where("best", temperature=temperature).set_index("window").rate.sort_index()


def lowest_temperature(rows: Rows) -> float:
    """Return the lowest positive temperature at which text was generated."""
    temperatures = rows["network"].temperature
    return float(temperatures[temperatures > 0].min())


@exact
def corpus(rows: Rows, column: str) -> float:
    """Return an exact number about the sequences of the corpus.

    Args:
        rows: Measured rows of a run, by kind.
        column: "rate" at which sequences seem to leave their pattern, in nats per token, or "survival", the probability
            of following it up to the horizon.
    """
    return float(rows["corpus"][column].iloc[0])


@exact
def decades_beyond_crossing(rows: Rows) -> float:
    """Return how far the mean coherent length of a network exceeds its crossing length at most, as a decimal logarithm.

    The coherent length is the number of tokens before the text changes to another pattern, and the crossing length is a
    theoretical bound.
    """
    both = rows["rate"].query("temperature == 1").merge(rows["bound"], on=["model", "seed"])
    return float((-np.log(both.rate) - both.log_crossing).max() / np.log(10))


@exact
def best_step(rows: Rows) -> float:
    """Return how much one more token in the window of an optimal model reduces the rate of leaving a pattern, at least.

    The smallest log ratio of rates at successive windows is returned, from the shortest trained window on.
    """
    best = best_rates(rows).loc[windows(rows)[0] :]
    return float((-np.diff(np.log(best.to_numpy()))).min())


@trainings
def text(rows: Rows, model: str, column: str, temperature: float = 1.0) -> "Series[float]":
    """Return a measured value of the text of one network.

    Args:
        rows: Measured rows of a run, by kind.
        model: Name of the network (see `names`).
        column: Name of the value, for example "survival", the share of texts that follow their pattern up to the
            horizon, or "mean_run", the mean number of tokens that do.
        temperature: Sampling temperature.

    Returns:
        One value per training seed.
    """
    return rows.where("network", temperature=temperature, model=model).set_index("seed")[column]


@trainings
def unlimited_gain(rows: Rows) -> "Series[float]":
    """Return how many more texts follow their pattern to the end with unlimited attention than with the longest window.

    Returns:
        One difference of shares per training seed.
    """
    survival = text_rows(rows).pivot(index="seed", columns="model", values="survival")
    return survival[UNLIMITED] - survival[cropped(windows(rows)[-1])]


@trainings
def measured_rate_error(rows: Rows) -> "Series[float]":
    """Return the log ratio of the measured to the expected number of texts that leave their pattern.

    The expected number follows from exact rates. Only tokens after the first measured window are used. Numbers are
    summed over networks with a window.

    Returns:
        One log ratio per training seed.
    """
    setting = ["model", "seed", "temperature"]
    table = text_rows(rows).dropna(subset="window").merge(rows["rate"][[*setting, "rate"]], on=setting)
    expected = (-np.expm1(-table.rate) * table.late_tokens).groupby(table.seed).sum()
    return (table.groupby("seed").late_ends.sum() / expected).apply(np.log)


@trainings
def mean_run_error(rows: Rows) -> "Series[float]":
    """Return the log ratio of the measured to the exact mean number of tokens before texts leave their pattern.

    Texts end at the horizon.

    Returns:
        One mean over networks with a window per training seed.
    """
    table = text_rows(rows).dropna(subset="window")
    return (table.mean_run / table.exact_mean_run).apply(np.log).groupby(table.seed).mean()


@trainings
def longer(rows: Rows, first: int | None = None, last: int | None = None) -> "Series[float]":
    """Return how much a longer window reduces the rate at which texts leave their pattern, at least.

    Args:
        rows: Measured rows of a run, by kind.
        first: Index of the first pair of successive windows. None for 0.
        last: Index after the last pair of successive windows. None for all.

    Returns:
        One minimum of the log ratio of rates per training seed.
    """
    found = rates(rows)[list(map(cropped, windows(rows)))]
    steps = (found.shift(1, axis=1) / found).iloc[:, 1:].iloc[:, first:last]
    return steps.apply(np.log).min(axis=1)


@trainings
def colder(rows: Rows, tells: bool) -> "Series[float]":
    """Return how much a lower temperature reduces the rate at which texts leave their pattern, at least.

    Temperature 1 is compared with the lowest measured temperature.

    Args:
        rows: Measured rows of a run, by kind.
        tells: Whether to select the networks whose window distinguishes the patterns instead of the shortest window.

    Returns:
        One minimum of the log ratio of rates per training seed.
    """
    models = distinguishing(rows) if tells else [cropped(windows(rows)[0])]
    ratios = rates(rows)[models] / rates(rows, lowest_temperature(rows))[models]
    return ratios.apply(np.log).min(axis=1)


@trainings
def above_best(rows: Rows, sliding: bool) -> "Series[float]":
    """Return the log ratio of the rates at which texts of networks and of optimal models leave their pattern.

    The optimal model sees as many tokens as the network.

    Args:
        rows: Measured rows of a run, by kind.
        sliding: Whether to select the network with sliding attention instead of those whose window distinguishes the
            patterns.

    Returns:
        One mean per training seed.
    """
    models = [SLIDING] if sliding else distinguishing(rows)
    seen = rows["bound"].groupby("model").window.first()[models]
    ratios = rates(rows)[models].div(best_rates(rows)[seen].to_numpy(), axis=1)
    return ratios.apply(np.log).mean(axis=1)


@trainings
def greedy_survival(rows: Rows) -> "Series[float]":
    """Return the smallest share of patterns that greedy decoding follows up to the horizon.

    The minimum is over networks whose window distinguishes the patterns.

    Returns:
        One share per training seed.
    """
    survival = text_rows(rows, 0.0).pivot(index="seed", columns="model", values="survival")
    return survival[distinguishing(rows)].min(axis=1)
