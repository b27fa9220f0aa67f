"""Statistics of the study about attention of transformers trained on bracket strings.

An arm is a way to train networks, for example with weight decay. Most statistics have one number per trained network.
Statistics of pairs of networks, and of all networks together, have one jackknife pseudo-value per network.
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
    """Return a measured value of networks whose first layer is a fixed embedding of brackets.

    The networks are trained on bracket strings.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the training method, for example "words" (complete strings) or "words, decay" (with weight decay).
        column: Name of the value, for example "inside", the accuracy on closing brackets in prefixes of the trained
            length.

    Returns:
        One value per training seed.
    """
    return _by_seed(rows, arm, column)


@standard_trainings
def standard(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measured value of networks with two transformer layers, which are trained on bracket strings.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the variant, for example "standard", or "standard, uniform" (uniform attention weights).
        column: Name of the value, for example "inside", the accuracy on closing brackets in prefixes of the trained
            length.

    Returns:
        One value per training seed.
    """
    return _by_seed(rows, arm, column)


@grid_trainings
def setting_closed(rows: Rows, setting: Setting) -> "Series[float]":
    """Return the accuracy on closing brackets for one setting of Table 2.6 of the thesis.

    The networks are evaluated on complete bracket strings.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        setting: Row of the table: numbers of bracket types, of nesting levels and of layers.

    Returns:
        One accuracy per training seed.
    """
    return rows.where("setting", **setting._asdict()).groupby("seed").inside.mean()


@exact
def learned_share(rows: Rows) -> float:
    """Return the smallest share of networks that predict more than 97 % of closing brackets correctly.

    Each row of Table 2.6 of the thesis is a combination of bracket types, nesting levels and layers. The share is
    computed for every row, and the minimum over rows is returned.
    """
    return min(float((setting_closed(setting)(rows) > LEARNED).mean()) for setting in SETTINGS)


@trainings
def closed(rows: Rows, arm: str) -> Counts:
    """Count the correctly predicted closing brackets in prefixes of the trained length.

    The networks have a fixed embedding of brackets as their first layer.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the training method, for example "words" (complete strings) or "words, decay" (with weight decay).

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
        arm: Name of the variant, for example "standard", or "standard, uniform" (uniform attention weights).

    Returns:
        Number of correct predictions and number of all closing brackets, per training seed.
    """
    return _closed(rows, arm)


@trainings
def variation(rows: Rows, arm: str) -> "Series[float]":
    """Return how much attention weights differ between networks that are trained with different seeds.

    The networks have a fixed embedding of brackets as their first layer. Two networks are compared by the squared
    distance between their attention weights on one nested bracket prefix (the constant `NESTED`), divided by the
    expected distance between random causal attention weights. Distances are averaged over pairs of networks.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the training method, for example "words" (complete strings) or "words, decay" (with weight decay).

    Returns:
        One jackknife pseudo-value of the mean per training seed.
    """
    return _variation(rows, arm, 1)


@standard_trainings
def standard_variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    """Return how much attention weights differ between networks that are trained with different seeds.

    The networks have two transformer layers. Two networks are compared by the squared distance between their attention
    weights on one nested bracket prefix, divided by the expected distance between random causal attention weights.
    Distances are averaged over pairs of networks.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the variant, for example "standard", or "standard, uniform" (uniform attention weights).
        layer: Layer whose attention weights are compared, 1 or 2.

    Returns:
        One jackknife pseudo-value of the mean per training seed.
    """
    return _variation(rows, arm, layer)


@grid_trainings
def setting_variation(rows: Rows, setting: Setting, layer: int) -> "Series[float]":
    """Return how much attention weights differ between training seeds, for one setting of Table 2.6 of the thesis.

    Two networks are compared by the squared distance between their attention weights, averaged over complete bracket
    strings and divided by the expected distance between random causal attention weights. Distances are averaged over
    pairs of networks.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        setting: Row of the table: numbers of bracket types, of nesting levels and of layers.
        layer: Layer whose attention weights are compared, from 1.

    Returns:
        One jackknife pseudo-value of the mean per training seed.
    """
    return _setting_variation(rows, setting, layer)


@grid_trainings
def table_variation(rows: Rows, layer: int, least_layers: int = 2) -> "Series[float]":
    """Return how much attention weights differ between training seeds, averaged over the settings of Table 2.6.

    A setting is a combination of bracket types, nesting levels and layers. Two networks of a setting are compared by
    the squared distance between their attention weights, divided by the expected distance between random causal
    attention weights.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        layer: Layer whose attention weights are compared, from 1.
        least_layers: Smallest number of layers of the networks. Settings with fewer layers are omitted.

    Returns:
        One mean of jackknife pseudo-values over settings per training seed.
    """
    found = [_setting_variation(rows, each, layer) for each in SETTINGS if each.layers >= least_layers]
    means: Series[float] = concat(found, axis=1).mean(axis=1)
    return means


@trainings
def rank_correlation(
    rows: Rows, arm: str, accuracy: str = "outside", violation: str = "balance"
) -> "Series[float]":
    """Return the Spearman correlation between the balance violation of networks and their error at lengths 400 to 500.

    The balance violation is zero if matched bracket pairs cancel in the attention sums, as Theorem 2.2.1 requires. The
    error is the share of closing brackets that a network predicts incorrectly.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        arm: Name of the training method, for example "words" (complete strings) or "words, decay" (with weight decay).
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

    def correlation(seeds: list[int]) -> float:
        return float(spearmanr(table[violation][seeds], 1 - table[accuracy][seeds]).statistic)

    return pseudo_values(sorted(table.index), correlation, MIN_RANKED)


@exact
def positive_share(rows: Rows) -> float:
    """Return the share of trained networks for which Theorem 2.2.2 gives a nontrivial bound.

    The theorem states that matched bracket pairs nearly cancel in the attention sums of a network with small errors on
    long bracket strings. Its bound is nontrivial if the first inequality requires a positive distance between the
    representations of two prefixes in at least one case.
    """
    return float((rows["network"].positive.dropna() > 0).mean())


@exact
def inequalities_failed(rows: Rows) -> float:
    """Return the number of cases in which an inequality of Theorem 2.2.2 is violated, over all trained networks.

    The theorem states that matched bracket pairs nearly cancel in the attention sums of a network with small errors on
    long bracket strings. Its proof is a chain of inequalities, which are evaluated for several prefixes per network.
    """
    return float(rows["network"].violations.sum())


def pattern(row: "Series[str]") -> np.ndarray:
    """Return the attention weights that are stored as JSON in a measured row.

    Args:
        row: Row with the JSON string in the column "weights".

    Returns:
        Attention weights (T, T) of a prefix of T tokens.
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
