"""Statistics of the study about the attention of transformers that predict closing brackets.

An arm is an architecture with a way of training, for example with weight decay. Most statistics have one number per
trained network. Statistics of pairs of networks, and of all networks together, have one jackknife pseudo-value per
network.
"""

import json

import numpy as np
from pandas import Series, concat
from scipy.stats import rankdata

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
    """Return a measured value of networks whose first layer is a fixed embedding of brackets.

    The networks are trained to predict closing brackets.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Way of training, for example "words" (on complete strings) or "words, decay" (with weight decay).
        column: Name of the value, for example "inside", the accuracy on closing brackets in prefixes of the trained
            length.

    Returns:
        One value per training seed.
    """
    return _by_seed(rows, arm, column)


@standard_trainings
def standard(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measured value of networks with two transformer layers.

    The networks are trained to predict closing brackets.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Variant of the network, for example "standard", or "standard, uniform" (uniform attention weights).
        column: Name of the value, for example "inside", the accuracy on closing brackets in prefixes of the trained
            length.

    Returns:
        One value per training seed.
    """
    return _by_seed(rows, arm, column)


@grid_trainings
def setting_closed(rows: Rows, setting: Setting) -> "Series[float]":
    """Return the accuracy of networks on closing brackets, for one row of Table 2.6.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        setting: Row of the table: number of bracket types, largest number of open brackets, and number of layers.

    Returns:
        One accuracy per training seed.
    """
    return rows.where("setting", **setting._asdict()).groupby("seed").inside.mean()


@exact
def learned_share(rows: Rows) -> float:
    """Return the smallest share of networks with an accuracy above 97 %.

    The accuracy is the share of correctly predicted closing brackets. The share is computed for every row of Table 2.6,
    and the minimum over rows is returned.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return min(float((setting_closed(setting)(rows) > LEARNED).mean()) for setting in SETTINGS)


@trainings
def closed(rows: Rows, arm: str) -> Counts:
    """Count the correctly predicted closing brackets in prefixes of the trained length.

    The first layer of the networks is a fixed embedding of brackets.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Way of training, for example "words" (on complete strings) or "words, decay" (with weight decay).

    Returns:
        Number of correct predictions and number of all closing brackets, per training seed.
    """
    return _closed(rows, arm)


@standard_trainings
def standard_closed(rows: Rows, arm: str) -> Counts:
    """Count the correctly predicted closing brackets in prefixes of the trained length.

    The networks have two transformer layers that read tokens.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Variant of the network, for example "standard", or "standard, uniform" (uniform attention weights).

    Returns:
        Number of correct predictions and number of all closing brackets, per training seed.
    """
    return _closed(rows, arm)


@trainings
def variation(rows: Rows, arm: str) -> "Series[float]":
    """Return how much the attention weights of networks with different seeds differ.

    Pairs of networks are compared, and the mean over pairs is returned. The first layer of the networks is a fixed
    embedding of brackets. The difference is the squared distance between their attention weights on one prefix, divided
    by the expected squared distance between random causal attention weights.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Way of training, for example "words" (on complete strings) or "words, decay" (with weight decay).

    Returns:
        One jackknife pseudo-value of the mean per training seed.
    """
    return _variation(rows, arm, 1)


@standard_trainings
def standard_variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    """Return how much the attention weights of networks with different seeds differ.

    Pairs of networks are compared, and the mean over pairs is returned. The networks have two transformer layers. The
    difference is the squared distance between their attention weights on one prefix, divided by the expected squared
    distance between random causal attention weights.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Variant of the network, for example "standard", or "standard, uniform" (uniform attention weights).
        layer: Layer whose attention weights are compared, 1 or 2.

    Returns:
        One jackknife pseudo-value of the mean per training seed.
    """
    return _variation(rows, arm, layer)


@grid_trainings
def setting_variation(rows: Rows, setting: Setting, layer: int) -> "Series[float]":
    """Return how much the attention weights of networks with different seeds differ.

    The networks belong to one row of Table 2.6. The difference is the mean squared distance between their attention
    weights on complete bracket strings, divided by the expected squared distance between random causal attention
    weights. It is averaged over pairs of networks.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        setting: Row of the table: number of bracket types, largest number of open brackets, and number of layers.
        layer: Layer whose attention weights are compared, from 1.

    Returns:
        One jackknife pseudo-value of the mean per training seed.
    """
    return _setting_variation(rows, setting, layer)


@grid_trainings
def table_variation(rows: Rows, layer: int, least_layers: int = 2) -> "Series[float]":
    """Return the mean of `setting_variation` over the rows of Table 2.6.

    It measures how much the attention weights of two networks with different seeds differ.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        layer: Layer whose attention weights are compared, from 1.
        least_layers: Smallest number of layers of the networks. Rows with fewer layers are omitted.

    Returns:
        One mean of jackknife pseudo-values per training seed.
    """
    found = [_setting_variation(rows, each, layer) for each in SETTINGS if each.layers >= least_layers]
    means: Series[float] = concat(found, axis=1).mean(axis=1)
    return means


@trainings
def rank_correlation(
    rows: Rows, arm: str, accuracy: str = "outside", violation: str = "balance"
) -> "Series[float]":
    """Return the Spearman correlation of the balance violation with the error of networks.

    The balance violation measures how far an opening bracket and its matching closing bracket are from canceling in the
    attention sums. Theorem 2.2.1 requires that it is zero. The error is the share of closing brackets that a network
    predicts incorrectly in prefixes of 400 to 500 brackets.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Way of training, for example "words" (on complete strings) or "words, decay" (with weight decay).
        accuracy: Column of the accuracy: "outside" for the definition in the text, "outside_confident" for the
            definition of the released program.
        violation: Column of the violation: "balance" for the definition in the text, "balance_released" for the
            definition of the released program.

    Returns:
        One jackknife pseudo-value of the correlation per training seed.

    Raises:
        NoRows: If a column has the same value for all networks, or if there are fewer than 10 networks.
    """
    table = rows.where("network", arm=arm).set_index("seed")
    for column in (violation, accuracy):
        if len(table) and table[column].nunique() < 2:
            raise NoRows(f"the correlation is undefined: all networks have the same {column}")

    columns = np.stack([table[violation], 1 - table[accuracy]])
    place = {seed: index for index, seed in enumerate(table.index)}

    def correlation(seeds: list[int]) -> float:
        ranks = rankdata(columns[:, [place[seed] for seed in seeds]], axis=1)
        return float(np.corrcoef(ranks)[0, 1])

    return pseudo_values(sorted(table.index), correlation, MIN_RANKED)


@exact
def positive_share(rows: Rows) -> float:
    """Return the share of trained networks to which the bound of Theorem 2.2.2 applies.

    The theorem states that matched brackets nearly cancel in the attention sums of a network with small errors. If the
    errors are too large, its first inequality is trivial, because it requires no positive distance between the
    representations of two prefixes.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return float((rows["network"].positive.dropna() > 0).mean())


@exact
def inequalities_failed(rows: Rows) -> float:
    """Return how often an inequality in the proof of Theorem 2.2.2 is violated.

    The theorem states that matched brackets nearly cancel in the attention sums of a network with small errors. The
    inequalities are evaluated for several prefixes per network.

    Args:
        rows: Measurements of a run, as one table per kind of row.
    """
    return float(rows["network"].violations.sum())


def pattern(row: "Series[str]") -> np.ndarray:
    """Return the attention weights (T, T) that are stored in a measured row.

    Args:
        row: Row with the weights as JSON in the column "weights".
    """
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
