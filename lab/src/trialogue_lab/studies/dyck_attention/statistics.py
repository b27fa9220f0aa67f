"""Statistics of the study. Most have one number per trained network.

Statistics of pairs of networks, and of all networks together, have one pseudo-value per network.
"""

import json

import numpy as np
from pandas import Series, concat
from scipy.stats import spearmanr

from trialogue_lab.analysis.attention_variation import causal_baseline
from trialogue_lab.ledger import Counts, NoRows, Replication, Rows, exact
from trialogue_lab.ledger.claims.jackknife import pair_values, pseudo_values
from trialogue_lab.studies.dyck_attention.measure import SENTENCE
from trialogue_lab.studies.dyck_attention.networks import SETTINGS, Setting

MIN_PAIRED, MIN_RANKED = 4, 10
"""Smallest number of networks for a mean over pairs, and for a rank correlation."""
LEARNED = 0.97
"""Accuracy above which the source counts a network as trained."""

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
    """Value of a column, for the networks with a minimal first layer."""
    return _by_seed(rows, arm, column)


@standard_trainings
def standard(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Value of a column, for the networks with two layers that read tokens."""
    return _by_seed(rows, arm, column)


@grid_trainings
def setting_closed(rows: Rows, setting: Setting) -> "Series[float]":
    """Accuracy on the closing brackets of words, for the networks of a setting of Table 2.6."""
    return rows.where("setting", **setting._asdict()).groupby("seed").inside.mean()


@exact
def learned_share(rows: Rows) -> float:
    """Share of networks with an accuracy above 97 %, in the setting of Table 2.6 in which it is smallest."""
    return min(float((setting_closed(setting)(rows) > LEARNED).mean()) for setting in SETTINGS)


@trainings
def closed(rows: Rows, arm: str) -> Counts:
    """Number of correct closing brackets in prefixes of the trained length, for minimal networks."""
    return _closed(rows, arm)


@standard_trainings
def standard_closed(rows: Rows, arm: str) -> Counts:
    """Number of correct closing brackets in prefixes of the trained length, for networks with two layers."""
    return _closed(rows, arm)


@trainings
def variation(rows: Rows, arm: str) -> "Series[float]":
    """Mean variation between two seeds on the nested prefix, relative to random causal attention."""
    return _variation(rows, arm, 1)


@standard_trainings
def standard_variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    """Mean variation between two seeds, as for `variation`, in one layer of the networks with two layers."""
    return _variation(rows, arm, layer)


@grid_trainings
def setting_variation(rows: Rows, setting: Setting, layer: int) -> "Series[float]":
    """Mean variation on the sentences of Table 2.6, relative to random causal attention, for one setting."""
    return _setting_variation(rows, setting, layer)


@grid_trainings
def table_variation(rows: Rows, layer: int, least_layers: int = 2) -> "Series[float]":
    """Mean of `setting_variation` over all settings with at least `least_layers` layers."""
    found = [_setting_variation(rows, each, layer) for each in SETTINGS if each.layers >= least_layers]
    means: Series[float] = concat(found, axis=1).mean(axis=1)
    return means


@trainings
def rank_correlation(
    rows: Rows, arm: str, accuracy: str = "outside", violation: str = "balance"
) -> "Series[float]":
    """Spearman correlation of the balance violation and the error at lengths 400 to 500, as pseudo-values.

    Args:
        rows: Rows of the run.
        arm: Arm of the networks.
        accuracy: Column of the accuracy: "outside" for the definition in the text, "outside_confident" for the
            definition of the released program.
        violation: Column of the violation: "balance", or "balance_released" for that program.

    Raises:
        NoRows: If a column has the same value for all networks, or if there are fewer than 10 networks.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    for column in (violation, accuracy):
        if len(table) and table[column].nunique() < 2:
            raise NoRows(f"the correlation is undefined: all networks have the same {column}")

    def correlation(seeds: list[int]) -> float:
        return float(spearmanr(table[violation][seeds], 1 - table[accuracy][seeds]).statistic)

    return pseudo_values(sorted(table.index), correlation, MIN_RANKED)


@exact
def positive_share(rows: Rows) -> float:
    """Share of trained networks for which the first inequality of Theorem 2.2.2 has a positive side."""
    return float((rows["network"].positive.dropna() > 0).mean())


@exact
def inequalities_failed(rows: Rows) -> float:
    """Number of cases in which an inequality of Theorem 2.2.2 fails, over all trained networks."""
    return float(rows["network"].violations.sum())


def pattern(row: "Series[str]") -> np.ndarray:
    """Return the attention weights (T, T) of a row."""
    return np.array(json.loads(row["weights"]))


def _variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    table = rows.where("pattern", arm=arm, layer=layer).sort_values("seed")
    if table.empty:
        raise NoRows(arm)
    patterns = np.stack([pattern(row) for _, row in table.iterrows()])
    distances = np.square(patterns[:, None] - patterns).sum((2, 3)) / causal_baseline(patterns.shape[1])
    return pair_values(table.seed.tolist(), distances, MIN_PAIRED)


def _setting_variation(rows: Rows, setting: Setting, layer: int) -> "Series[float]":
    table = rows.where("pair", layer=layer, **setting._asdict())
    if table.empty:
        raise NoRows(str(setting))
    seeds = sorted({*table.seed, *table.other})
    one_way = table.pivot(index="seed", columns="other", values="variation")
    distances = one_way.reindex(index=seeds, columns=seeds).fillna(0.0).to_numpy()
    return pair_values(seeds, (distances + distances.T) / causal_baseline(SENTENCE + 1), MIN_PAIRED)
