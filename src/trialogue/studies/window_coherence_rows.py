"""What the claims, tables and figures of the study `window-coherence` read from its rows."""

import numpy as np
from pandas import DataFrame, Series

from trialogue.studies.rows import kind

SLIDING = "sliding attention"
UNLIMITED = "unlimited attention"


def cropped(window: int) -> str:
    """The name of a network that is asked about its last `window` tokens."""
    return f"last {window} tokens"


def windows(rows: DataFrame) -> list[int]:
    """The windows of the cropped networks, shortest first."""
    chosen = kind(rows, "network")
    return sorted(chosen[chosen.model.str.startswith("last")].window.astype(int).unique().tolist())


def names(rows: DataFrame) -> list[str]:
    """The networks: cropped ones, shortest window first, then the other two."""
    return [*map(cropped, windows(rows)), SLIDING, UNLIMITED]


def networks(rows: DataFrame, temperature: float = 1.0, *models: str) -> DataFrame:
    """What was measured of the text of the networks `models`, or of all, at one temperature."""
    chosen = kind(rows, "network")
    chosen = chosen[chosen.temperature == temperature]
    return chosen[chosen.model.isin(models)] if models else chosen


def rates(rows: DataFrame, temperature: float = 1.0) -> DataFrame:
    """Exact decay rates of the networks with a window, by seed (index) and model (columns)."""
    chosen = kind(rows, "rate")
    return chosen[chosen.temperature == temperature].pivot(index="seed", columns="model", values="rate")


def best_rates(rows: DataFrame, temperature: float = 1.0) -> "Series[float]":
    """Exact decay rates of the best models with a window, by window."""
    chosen = kind(rows, "best")
    chosen = chosen[chosen.temperature == temperature]
    found: Series[float] = chosen.set_index(chosen.window.astype(int)).rate
    return found


def corpus(rows: DataFrame) -> "Series[float]":
    """What is exact of the corpus itself: its rate, and its survival to the horizon."""
    return kind(rows, "corpus").iloc[0]


def lowest_temperature(rows: DataFrame) -> float:
    """The lowest temperature above zero at which text was generated."""
    temperatures = kind(rows, "network").temperature
    return float(temperatures[temperatures > 0].min())


def log_ratio(above: "Series[float]", below: "Series[float]") -> "Series[float]":
    """Natural logarithm of a ratio; rates that were not measurable give what is not finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return Series(np.log((above / below).to_numpy()), index=above.index)
