"""Claims of the study `window-coherence`: Corollary 1.2.1, its rate, what lengthens coherence, and the controls."""

import math

import numpy as np
from pandas import DataFrame, Series

from trialogue.ledger.replication import NOT_PRINTED, exact_claim
from trialogue.studies.rows import kind
from trialogue.studies.window_coherence_pilot import TRAININGS
from trialogue.studies.window_coherence_rows import (
    SLIDING,
    UNLIMITED,
    best_rates,
    corpus,
    cropped,
    log_ratio,
    lowest_temperature,
    networks,
    rates,
    windows,
)

_COROLLARY = "Potts chains, Corollary 1.2.1"
_GROWS, _COST = "Potts chains, Theorem 1.1, equation 3", "the most a wall can cost grows with W - 1"


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


def _text_over_law(rows: DataFrame) -> "Series[float]":
    """Log of the mean tokens up to the first wall or the horizon, measured over exact, mean over finite windows."""
    chosen = networks(rows)
    chosen = chosen[chosen.window.notna()]
    mean: Series[float] = log_ratio(chosen.mean_run, chosen.exact_mean_run).groupby(chosen.seed).mean()
    return mean


def _late_error(rows: DataFrame) -> float:
    return float(kind(rows, "rate").late_error.max())


def _steps(rows: DataFrame) -> DataFrame:
    """Log ratio between the rates of each window and the next longer one, by seed."""
    found = rates(rows)[list(map(cropped, windows(rows)))]
    return DataFrame(
        {
            place: log_ratio(found.iloc[:, place], found.iloc[:, place + 1])
            for place in range(found.shape[1] - 1)
        }
    )


def _steps_to_a_period(rows: DataFrame) -> "Series[float]":
    """The least of those up to the longest window but one."""
    smallest: Series[float] = _steps(rows).iloc[:, : max(1, len(windows(rows)) - 2)].min(axis=1)
    return smallest


def _last_step(rows: DataFrame) -> "Series[float]":
    last: Series[float] = _steps(rows).iloc[:, -1]
    return last


def _best_steps(rows: DataFrame) -> float:
    """Least log ratio between the best models with a window and with one token more, from the shortest trained one."""
    best = best_rates(rows).sort_index().loc[windows(rows)[0] :]
    return float((-np.diff(np.log(best.to_numpy()))).min())


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
    exact_claim(
        "no-window-is-coherent-for-ever",
        "Every trained network with a finite window leaves its pattern at a positive rate, at every temperature above "
        "zero (smallest long-run rate, nats per token).",
        _COROLLARY,
        "cannot generate infinite coherent output",
        _smallest_rate,
        0.0,
        "above",
    ),
    exact_claim(
        "coherent-below-the-crossing-length",
        "The mean coherent length of every network is below the crossing length of its Hamiltonian (most decades "
        "above).",
        "Potts chains, Theorem 1.1, equation 5",
        "L* = 1 + exp((W - 1) E_max / T) / (N - 1)",
        _crossing,
        0.0,
        "below",
    ),
    exact_claim(
        "no-window-has-the-law-of-the-corpus",
        "The best model with any of the windows leaves its pattern more than ten times as fast as the corpus seems to, "
        "by the noise of the measure (smallest ratio).",
        f"{_COROLLARY} (not in the document)",
        NOT_PRINTED,
        _smallest_of_best,
        10.0,
        "above",
    ),
    exact_claim(
        "survival-falls-at-the-eigenvalue",
        "Over the last measured window before the horizon, exact survival falls at the rate of the chain's largest "
        "eigenvalue within 5 % (largest log ratio over networks, patterns and temperatures of generation).",
        _COROLLARY,
        "the product of the probabilities to stay",
        _late_error,
        0.05,
        "below",
    ),
    TRAININGS.claim(
        "text-has-the-exact-law",
        "Text stays in its pattern as long as the transfer matrix of the network that wrote it says (log ratio of the "
        "mean tokens before a wall or the horizon, mean over finite windows).",
        _COROLLARY,
        "Theorem 1.2: the model is a Potts chain",
        _text_over_law,
        0.0,
        "equal",
        margin=0.05,
    ),
    exact_claim(
        "best-models-with-longer-windows-stay-longer",
        "Of the best models with a window, one with a token more always leaves its pattern more slowly (least log "
        "ratio of rates, from the shortest trained window on).",
        _GROWS,
        _COST,
        _best_steps,
        0.0,
        "above",
    ),
    TRAININGS.claim(
        "longer-windows-stay-longer",
        "Up to the longest window but one (one period), networks with a longer window leave their pattern more slowly "
        "(least log ratio of rates).",
        _GROWS,
        _COST,
        _steps_to_a_period,
        0.0,
        "above",
    ),
    TRAININGS.claim(
        "beyond-a-period-stays-longer",
        "The longest window (more than one period) leaves its pattern more slowly than the one before (log ratio of "
        "rates).",
        _GROWS,
        _COST,
        _last_step,
        0.0,
        "above",
    ),
    TRAININGS.claim(
        "colder-stays-longer",
        "Where the window tells the patterns apart, the rate at the lowest temperature of generation is less than half "
        "of that at 1 (least log ratio).",
        "Potts chains, Theorem 1.1, equation 5",
        "exp(-(W - 1) E_max / T)",
        lambda rows: _colder(rows, _telling(rows)),
        math.log(2),
        "above",
    ),
    TRAININGS.claim(
        "cold-does-not-help-a-window-that-cannot-tell",
        "With the shortest window, whose contexts belong to both patterns, the rate does not depend on the temperature "
        "(log ratio of rates).",
        "Potts chains, Theorem 1.1 (not in the document)",
        NOT_PRINTED,
        _shortest_colder,
        0.0,
        "equal",
        margin=0.1,
    ),
    TRAININGS.claim(
        "networks-leave-faster-than-the-best",
        "A trained network leaves its pattern faster than the best model with its window (log ratio of rates, mean "
        "over windows that tell the patterns apart).",
        f"{_COROLLARY} (not in the document)",
        NOT_PRINTED,
        _above_the_best,
        0.0,
        "above",
    ),
    TRAININGS.claim(
        "sliding-attention-is-a-window",
        "Attention within a window leaves faster than the best model whose window is its receptive field (log ratio of "
        "rates).",
        f"{_COROLLARY} (not in the document)",
        NOT_PRINTED,
        _sliding_above_the_best,
        0.0,
        "above",
    ),
    TRAININGS.claim(
        "unlimited-attention-stays-longer",
        "With attention to all of the text, more of it is still in its pattern at the horizon than with the longest "
        "window, by more than 0.2.",
        "Potts chains, section on topologies (not measured there)",
        NOT_PRINTED,
        _unlimited_gain,
        0.2,
        "above",
    ),
    TRAININGS.claim(
        "unlimited-attention-is-as-coherent-as-the-corpus",
        "With attention to all of the text, survival to the horizon is that of the corpus.",
        "Potts chains, section on topologies (not measured there)",
        NOT_PRINTED,
        _unlimited_and_corpus,
        0.0,
        "equal",
        margin=0.02,
    ),
    TRAININGS.claim(
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
