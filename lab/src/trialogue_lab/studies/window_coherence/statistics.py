"""Statistics of the study about how long generated text follows a stored pattern.

Sequences of the corpus follow one of several periodic patterns, with noise. A network sees a window of previous tokens.
A wall is a place where its text changes from one pattern to another, and the decay rate is the number of walls per
token in long texts. The horizon is the length of the generated text.
"""

import numpy as np
from pandas import DataFrame, Series

from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.studies.window_coherence.config import SLIDING, UNLIMITED, cropped

trainings = Replication("training", "seeds")


def list_windows(rows: Rows) -> list[int]:
    """Return the context lengths of the networks whose input is cropped to the last tokens.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        Numbers of previous tokens, in ascending order.
    """
    table = rows["bound"]
    return sorted(table.window[table.model != SLIDING].unique().tolist())


def list_networks(rows: Rows) -> list[str]:
    """Return the names of all trained networks.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        First the networks with a cropped context, in ascending order of its length. Then the network with
        sliding-window attention, and the network with unlimited attention.
    """
    return [*map(cropped, list_windows(rows)), SLIDING, UNLIMITED]


def list_distinguishing_networks(rows: Rows) -> list[str]:
    """Return the names of the networks whose context distinguishes the patterns of the corpus.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        All networks whose input is cropped to the last tokens, except the network with the shortest context.
    """
    return list(map(cropped, list_windows(rows)[1:]))


def select_text_rows(rows: Rows, temperature: float = 1.0) -> DataFrame:
    """Select the measurements of the text that networks generated at one temperature.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        temperature: Sampling temperature (default: 1). 0 for greedy decoding.

    Returns:
        One row per training seed and network.
    """
    return rows.where("network", temperature=temperature)


def select_rates(rows: Rows, temperature: float = 1.0) -> DataFrame:
    """Return the exact rates at which text of the trained networks stops following its pattern.

    The networks have a finite context and are trained on noisy periodic patterns. For text of n tokens, the probability
    that it still follows its pattern falls like exp(-rate n).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        temperature: Sampling temperature (default: 1).

    Returns:
        Rates in nats per token, with one row per training seed and one column per network.
    """
    return rows.where("rate", temperature=temperature).pivot(index="seed", columns="model", values="rate")


def select_best_rates(rows: Rows, temperature: float = 1.0) -> "Series[float]":
    """Return the exact rates at which text of an optimal model stops following a pattern.

    The optimal model predicts the next token by its exact probability given the previous w tokens. For text of n
    tokens, the probability that it still follows its pattern falls like exp(-rate n).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        temperature: Sampling temperature (default: 1).

    Returns:
        One rate in nats per token for each w, in ascending order of w.
    """
    return rows.where("best", temperature=temperature).set_index("window").rate.sort_index()


def find_lowest_temperature(rows: Rows) -> float:
    """Return the lowest positive temperature at which text was generated.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    temperatures = rows["network"].temperature
    return float(temperatures[temperatures > 0].min())


@exact
def corpus(rows: Rows, column: str) -> float:
    """Return an exactly computed property of the corpus on which the networks are trained.

    Every sequence of the corpus follows a periodic pattern, but each token is wrong with a given probability.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "survival" for the probability that a text of the generated length still shows its pattern at the end.
            "rate" for the exponential decay rate of this probability with the length, in nats per token.
    """
    return float(rows["corpus"][column].iloc[0])


@exact
def decades_beyond_crossing(rows: Rows) -> float:
    """Return the largest factor by which text of a network follows its pattern longer than theory predicts, as log10.

    Text is coherent while it follows one periodic pattern. The measured length is 1 / rate, where rate is the
    exact rate per token at which a network's text leaves its pattern. Theory predicts the text length from
    which changes between patterns are likely.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The maximum over networks with a finite context and training seeds, at temperature 1.
    """
    both = rows["rate"].query("temperature == 1").merge(rows["bound"], on=["model", "seed"])
    return float((-np.log(both.rate) - both.log_crossing).max() / np.log(10))


@exact
def best_step(rows: Rows) -> float:
    """Return the smallest benefit of one more token of context for an optimal model that should follow a pattern.

    The optimal model predicts the next token from the previous w tokens. Its rate r(w) is the exact rate per token at
    which its text stops following a periodic pattern. The benefit is log(r(w) / r(w + 1)).

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        The minimum over all w of at least the shortest context of a trained network.
    """
    best = select_best_rates(rows).loc[list_windows(rows)[0] :]
    return float((-np.diff(np.log(best.to_numpy()))).min())


@trainings
def text(rows: Rows, model: str, column: str, temperature: float = 1.0) -> "Series[float]":
    """Return a measurement of the text that one network generated, for example how long it follows a pattern.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        model: Name of the network, as returned by `list_networks`.
        column: Name of the value: "survival" for the share of texts that follow their pattern to the end, "mean_run"
            for the mean number of tokens before a text stops following its pattern, or another column.
        temperature: Sampling temperature (default: 1). 0 for greedy decoding.

    Returns:
        One value per training seed.
    """
    return rows.where("network", temperature=temperature, model=model).set_index("seed")[column]


@trainings
def unlimited_gain(rows: Rows) -> "Series[float]":
    """Return how many more texts follow their pattern to the end with unlimited attention than with a cropped context.

    The share of such texts is computed for the network with unlimited attention. The share for the network with the
    longest cropped context is subtracted.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One difference of shares per training seed.
    """
    survival = select_text_rows(rows).pivot(index="seed", columns="model", values="survival")
    return survival[UNLIMITED] - survival[cropped(list_windows(rows)[-1])]


@trainings
def measured_rate_error(rows: Rows) -> "Series[float]":
    """Return how many more texts leave their pattern than expected, as a natural log ratio (observed / expected).

    The expected number is computed from the exact rates at which networks with a finite context leave a
    pattern. The first tokens of a text are omitted, because they depend on the noise-free prompt.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One natural log ratio per training seed, for all networks and temperatures together.
    """
    setting = ["model", "seed", "temperature"]
    table = select_text_rows(rows).dropna(subset="window").merge(rows["rate"][[*setting, "rate"]], on=setting)
    expected = (-np.expm1(-table.rate) * table.late_tokens).groupby(table.seed).sum()
    return (table.groupby("seed").late_ends.sum() / expected).apply(np.log)


@trainings
def mean_run_error(rows: Rows) -> "Series[float]":
    """Return how much longer text follows its pattern than expected, as a natural log ratio (observed / exact).

    The length is the mean number of tokens until text leaves its pattern. Texts that follow their pattern to the end
    count with their full length.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One number per training seed: the mean over networks with a finite context, at temperature 1.
    """
    table = select_text_rows(rows).dropna(subset="window")
    return (table.mean_run / table.exact_mean_run).apply(np.log).groupby(table.seed).mean()


@trainings
def longer(rows: Rows, first: int | None = None, last: int | None = None) -> "Series[float]":
    """Return the smallest benefit of a longer context for a network that should follow a pattern.

        benefit = log(rate with the shorter context / rate with the longer context)

    The rate is the exact rate per token at which a network's text stops following a periodic pattern.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        first: Index of the first pair of successive context lengths. None (default) for 0.
        last: Index after the last pair of successive context lengths. None (default) for all.

    Returns:
        The smallest benefit over these pairs, per training seed.
    """
    found = select_rates(rows)[list(map(cropped, list_windows(rows)))]
    steps = (found.shift(1, axis=1) / found).iloc[:, 1:].iloc[:, first:last]
    return steps.apply(np.log).min(axis=1)


@trainings
def colder(rows: Rows, tells: bool) -> "Series[float]":
    """Return the smallest benefit of a low temperature for a network that should follow a pattern.

        benefit = log(rate at temperature 1 / rate at the lowest positive temperature)

    The rate is the exact rate per token at which a network's text stops following a periodic pattern.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        tells: True to select the networks whose context is long enough to distinguish the patterns. False to
            select the network with the shortest context.

    Returns:
        The smallest benefit over the selected networks, per training seed.
    """
    models = list_distinguishing_networks(rows) if tells else [cropped(list_windows(rows)[0])]
    ratios = select_rates(rows)[models] / select_rates(rows, find_lowest_temperature(rows))[models]
    return ratios.apply(np.log).min(axis=1)


@trainings
def above_best(rows: Rows, sliding: bool) -> "Series[float]":
    """Return how much faster the text of networks leaves its pattern than text of an optimal model, as a log ratio.

    The rate is the exact rate per token at which text stops following a periodic pattern. The optimal model sees
    equally many previous tokens, and predicts the next token by its exact probability.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        sliding: True to select the network with sliding-window attention. False to select the networks whose
            cropped context is long enough to distinguish the patterns.

    Returns:
        One number per training seed: the mean over the selected networks.
    """
    models = [SLIDING] if sliding else list_distinguishing_networks(rows)
    seen = rows["bound"].groupby("model").window.first()[models]
    ratios = select_rates(rows)[models].div(select_best_rates(rows)[seen].to_numpy(), axis=1)
    return ratios.apply(np.log).mean(axis=1)


@trainings
def greedy_survival(rows: Rows) -> "Series[float]":
    """Return the smallest share of patterns that a network follows to the end by greedy decoding.

    Only networks whose context is long enough to distinguish the patterns are used.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.

    Returns:
        One minimum over networks per training seed.
    """
    survival = select_text_rows(rows, 0.0).pivot(index="seed", columns="model", values="survival")
    return survival[list_distinguishing_networks(rows)].min(axis=1)
