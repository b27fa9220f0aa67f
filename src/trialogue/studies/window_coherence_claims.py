"""Claims of the study `window-coherence`: Corollary 1.2.1, its rate, what lengthens coherence, and the controls."""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue.studies.window_coherence_pilot import exact, replicated
from trialogue.studies.window_coherence_rows import (
    SLIDING,
    UNLIMITED,
    best_rates,
    corpus,
    cropped,
    kind,
    log_ratio,
    lowest_temperature,
    networks,
    rates,
    windows,
)

_COROLLARY = "Potts chains, Corollary 1.2.1"
_NOT_PRINTED = "not printed"


def _by_seed(chosen: DataFrame, column: str) -> "Series[float]":
    found: Series[float] = chosen.set_index("seed")[column]
    return found


def _telling(rows: DataFrame) -> list[str]:
    """The cropped networks whose window tells the patterns apart where there is no noise: all but the shortest."""
    return [cropped(window) for window in windows(rows)[1:]]


def _smallest_rate(rows: DataFrame) -> float:
    return float(kind(rows, "rate").rate.min())


def _crossing(rows: DataFrame) -> float:
    """Most decades by which the mean coherent length of a network exceeds its crossing length."""
    bounds = kind(rows, "bound").pivot(index="seed", columns="model", values="log_crossing")
    excess = -np.log(rates(rows).to_numpy()) - bounds[rates(rows).columns].to_numpy()
    return float(excess.max() / math.log(10))


def _smallest_of_best(rows: DataFrame) -> float:
    return float(best_rates(rows).min() / corpus(rows).rate)


def _measured_over_exact(rows: DataFrame) -> "Series[float]":
    """Log of the walls behind the first measured window over those that the exact rate gives, all windows together."""
    chosen = networks(rows)
    chosen = chosen[chosen.window.notna()].pivot(index="seed", columns="model")
    hazards: DataFrame = rates(rows).map(lambda rate: -math.expm1(-rate))
    return log_ratio(DataFrame(chosen.late_ends).sum(axis=1), (hazards * chosen.late_tokens).sum(axis=1))


def _longer_windows(rows: DataFrame) -> "Series[float]":
    """Least log ratio between the rates of a window and the next longer one."""
    found = rates(rows)[list(map(cropped, windows(rows)))]
    steps = [log_ratio(found.iloc[:, place], found.iloc[:, place + 1]) for place in range(found.shape[1] - 1)]
    smallest: Series[float] = DataFrame(dict(enumerate(steps))).min(axis=1)
    return smallest


def _colder(rows: DataFrame, names: list[str]) -> "Series[float]":
    """Least log ratio, over networks, between the rates at temperature 1 and at the lowest one."""
    warm, cold = rates(rows)[names], rates(rows, lowest_temperature(rows))[names]
    smallest: Series[float] = DataFrame({name: log_ratio(warm[name], cold[name]) for name in names}).min(
        axis=1
    )
    return smallest


def _shortest_colder(rows: DataFrame) -> "Series[float]":
    return _colder(rows, [cropped(windows(rows)[0])])


def _above_the_best(rows: DataFrame) -> "Series[float]":
    """Log ratio of the rates of networks and of the best models with their windows, mean over windows that tell."""
    found, best = rates(rows), best_rates(rows)
    chosen = {window: np.log(found[cropped(window)] / best[window]) for window in windows(rows)[1:]}
    mean: Series[float] = DataFrame(chosen).mean(axis=1)
    return mean


def _sliding_above_the_best(rows: DataFrame) -> "Series[float]":
    field = int(networks(rows, 1.0, SLIDING).window.iloc[0])
    found: Series[float] = np.log(rates(rows)[SLIDING] / best_rates(rows)[field])
    return found


def _unlimited_gain(rows: DataFrame) -> "Series[float]":
    longest = networks(rows, 1.0, cropped(windows(rows)[-1]))
    return _by_seed(networks(rows, 1.0, UNLIMITED), "survival") - _by_seed(longest, "survival")


def _unlimited_and_corpus(rows: DataFrame) -> "Series[float]":
    return _by_seed(networks(rows, 1.0, UNLIMITED), "survival") - float(corpus(rows).survival)


def _greedy(rows: DataFrame) -> "Series[float]":
    """Share of patterns that greedy decoding holds to the horizon, least over networks whose window tells."""
    chosen = networks(rows, 0.0, *_telling(rows))
    found: Series[float] = chosen.groupby("seed").survival.min()
    return found


CLAIMS = (
    exact(
        "no-window-is-coherent-for-ever",
        "Every trained network with a finite window leaves its pattern at a positive rate, at every temperature above "
        "zero (smallest long-run rate, nats per token).",
        _COROLLARY,
        "cannot generate infinite coherent output",
        _smallest_rate,
        0.0,
        "above",
    ),
    exact(
        "coherent-below-the-crossing-length",
        "The mean coherent length of every network is below the crossing length of its Hamiltonian (most decades "
        "above).",
        "Potts chains, Theorem 1.1, equation 5",
        "L* = 1 + exp((W - 1) E_max / T) / (N - 1)",
        _crossing,
        0.0,
        "below",
    ),
    exact(
        "no-window-has-the-law-of-the-corpus",
        "The best model with any of the windows leaves its pattern more than ten times as fast as the corpus seems to, "
        "by the noise of the measure (smallest ratio).",
        f"{_COROLLARY} (not in the document)",
        _NOT_PRINTED,
        _smallest_of_best,
        10.0,
        "above",
    ),
    replicated(
        "measured-rate-is-the-eigenvalue",
        "Text leaves its pattern at the rate of the transfer matrix of the network that wrote it (log ratio of walls "
        "behind the first measured window, all windows together).",
        _COROLLARY,
        "the product of the probabilities to stay",
        _measured_over_exact,
        0.0,
        "equal",
        margin=0.1,
    ),
    replicated(
        "longer-windows-stay-longer",
        "Each longer window leaves its pattern more slowly than the next shorter one (least log ratio of rates).",
        "Potts chains, Theorem 1.1",
        "the cost of a wall grows with W - 1",
        _longer_windows,
        0.0,
        "above",
    ),
    replicated(
        "colder-stays-longer",
        "Where the window tells the patterns apart, the rate at the lowest temperature of generation is less than half "
        "of that at 1 (least log ratio).",
        "Potts chains, Theorem 1.1, equation 5",
        "exp(-(W - 1) E_max / T)",
        lambda rows: _colder(rows, _telling(rows)),
        math.log(2),
        "above",
    ),
    replicated(
        "cold-does-not-help-a-window-that-cannot-tell",
        "With the shortest window, whose contexts belong to both patterns, the rate does not depend on the temperature "
        "(log ratio of rates).",
        "Potts chains, Theorem 1.1 (not in the document)",
        _NOT_PRINTED,
        _shortest_colder,
        0.0,
        "equal",
        margin=0.1,
    ),
    replicated(
        "networks-leave-faster-than-the-best",
        "A trained network leaves its pattern faster than the best model with its window (log ratio of rates, mean "
        "over windows that tell the patterns apart).",
        f"{_COROLLARY} (not in the document)",
        _NOT_PRINTED,
        _above_the_best,
        0.0,
        "above",
    ),
    replicated(
        "sliding-attention-is-a-window",
        "Attention within a window leaves faster than the best model whose window is its receptive field (log ratio of "
        "rates).",
        f"{_COROLLARY} (not in the document)",
        _NOT_PRINTED,
        _sliding_above_the_best,
        0.0,
        "above",
    ),
    replicated(
        "unlimited-attention-stays-longer",
        "With attention to all of the text, more of it is still in its pattern at the horizon than with the longest "
        "window, by more than 0.2.",
        "Potts chains, section on topologies (not measured there)",
        _NOT_PRINTED,
        _unlimited_gain,
        0.2,
        "above",
    ),
    replicated(
        "unlimited-attention-is-as-coherent-as-the-corpus",
        "With attention to all of the text, survival to the horizon is that of the corpus.",
        "Potts chains, section on topologies (not measured there)",
        _NOT_PRINTED,
        _unlimited_and_corpus,
        0.0,
        "equal",
        margin=0.02,
    ),
    replicated(
        "greedy-decoding-stays",
        "At temperature zero, where E_max is infinite and the theorem does not hold, networks whose window tells the "
        "patterns apart hold each of them to the horizon (least share of patterns).",
        "Potts chains, Theorem 1.1, its assumption",
        "E_max is finite",
        _greedy,
        0.99,
        "above",
    ),
)
