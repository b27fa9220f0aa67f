"""Quantities of the study: by trained network, also where they are made of all networks or of pairs of them."""

import json

import numpy as np
from numpy.typing import NDArray
from pandas import Series, concat
from scipy.stats import spearmanr

from trialogue_lab.analysis.attention_variation import causal_baseline
from trialogue_lab.ledger import Replication, Rows, exact
from trialogue_lab.ledger.claims.jackknife import pair_values, pseudo_values
from trialogue_lab.ledger.claims.statistics import Counts
from trialogue_lab.ledger.rows import NoRows
from trialogue_lab.studies.dyck_attention.measure import SENTENCE
from trialogue_lab.studies.dyck_attention.networks import SETTINGS, Setting

FEWEST_PAIRED, FEWEST_RANKED = 4, 10
"""Networks that a mean over their pairs, and a rank correlation, are told from"""
LEARNED = 0.97
"""Accuracy above which the source counts a network as trained"""

trainings = Replication("training", "seeds")
standard_trainings = Replication("training", "standard_seeds")
grid_trainings = Replication("training", "grid_seeds")


def _by_seed(rows: Rows, arm: str, column: str) -> "Series[float]":
    return rows.where("network", arm=arm).groupby("seed")[column].mean()


def _closed(rows: Rows, arm: str) -> Counts:
    trials = _by_seed(rows, arm, "closings")
    return Counts((_by_seed(rows, arm, "inside") * trials).round(), trials)


@trainings
def minimal(rows: Rows, arm: str, column: str) -> "Series[float]":
    """A number of the networks with a minimal first layer."""
    return _by_seed(rows, arm, column)


@standard_trainings
def standard(rows: Rows, arm: str, column: str) -> "Series[float]":
    """A number of the networks of two layers that read tokens."""
    return _by_seed(rows, arm, column)


@grid_trainings
def setting_closed(rows: Rows, setting: Setting) -> "Series[float]":
    """The share of closing brackets of words that the networks of a setting of Table 2.6 close rightly."""
    return rows.where("setting", **setting._asdict()).groupby("seed").inside.mean()


@exact
def learned_share(rows: Rows) -> float:
    """Return the smallest share, over the settings of Table 2.6, of networks that close more than 97 % rightly."""
    shares = [(rows.where("setting", **setting._asdict()).inside > LEARNED).mean() for setting in SETTINGS]
    return float(min(shares))


@trainings
def closed(rows: Rows, arm: str) -> Counts:
    """How many closing brackets of prefixes of the trained length minimal networks close rightly."""
    return _closed(rows, arm)


@standard_trainings
def standard_closed(rows: Rows, arm: str) -> Counts:
    """The same of the networks of two layers."""
    return _closed(rows, arm)


@trainings
def variation(rows: Rows, arm: str) -> "Series[float]":
    """Mean variation between two seeds on the nested prefix, over that of random causal attention: pseudo-values."""
    return _variation(rows, arm, 1)


@standard_trainings
def standard_variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    """The same of a layer of the networks of two layers."""
    return _variation(rows, arm, layer)


@grid_trainings
def setting_variation(rows: Rows, setting: Setting, layer: int) -> "Series[float]":
    """Mean variation on sentences of Table 2.6, over that of random causal attention: pseudo-values of a setting."""
    return _setting_variation(rows, setting, layer)


@grid_trainings
def table_variation(rows: Rows, layer: int, least_layers: int = 2) -> "Series[float]":
    """The mean of that over all settings of at least so many layers."""
    found = [_setting_variation(rows, each, layer) for each in SETTINGS if each.layers >= least_layers]
    means: Series[float] = concat(found, axis=1).mean(axis=1)
    return means


@trainings
def rank_correlation(
    rows: Rows, arm: str, accuracy: str = "outside", violation: str = "balance"
) -> "Series[float]":
    """Spearman's correlation of the balance violation and the error at lengths 400 to 500, as pseudo-values.

    `accuracy` and `violation` name the columns: `outside` counts closing brackets that are the likeliest one,
    `outside_confident` and `balance_released` are those of the released program.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    for column in (violation, accuracy):
        if len(table) and table[column].nunique() < 2:
            raise NoRows(f"the correlation is undefined: all networks have the same {column}")

    def correlation(seeds: list[int]) -> float:
        return float(spearmanr(table[violation][seeds], 1 - table[accuracy][seeds]).statistic)

    return pseudo_values(sorted(table.index), correlation, FEWEST_RANKED)


@exact
def positive_share(rows: Rows) -> float:
    """The share of trained networks of which the first inequality of Theorem 2.2.2 asks more than nothing somewhere."""
    table = rows["network"].dropna(subset=["positive"])
    return float((table.positive > 0).mean())


@exact
def inequalities_failed(rows: Rows) -> float:
    """How many cases of the theorem's inequalities fail, over all trained networks."""
    return float(rows["network"].violations.dropna().sum())


def pattern(row: "Series[str]") -> np.ndarray:
    """The attention pattern (T, T) of a row."""
    return np.array(json.loads(row["weights"]))


def _variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    table = rows.where("pattern", arm=arm, layer=layer).sort_values("seed")
    if table.empty:
        raise NoRows(arm)
    patterns = np.stack([pattern(row) for _, row in table.iterrows()])
    between = np.square(patterns[:, None] - patterns).sum((2, 3)) / causal_baseline(patterns.shape[1])
    return pair_values(table.seed.tolist(), between, FEWEST_PAIRED)


def _setting_variation(rows: Rows, setting: Setting, layer: int) -> "Series[float]":
    table = rows.where("pair", layer=layer, **setting._asdict())
    if table.empty:
        raise NoRows(str(setting))
    labels = sorted({*table.seed, *table.other})
    place = {label: index for index, label in enumerate(labels)}
    between: NDArray[np.float64] = np.zeros((len(labels), len(labels)))
    for _, row in table.iterrows():
        between[tuple(sorted((place[row.seed], place[row.other])))] = row.variation
    return pair_values(labels, between / causal_baseline(SENTENCE + 1), FEWEST_PAIRED)
