"""Statistics of the study about the attention of transformers that predict closing brackets.

An arm is an architecture together with a training procedure, for example with weight decay. Most statistics have one
number per trained network. Statistics of several networks, such as a correlation, have one jackknife pseudo-value per
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
from trialogue_lab.studies.dyck_attention.networks import SETTINGS, GridSetting

MIN_PAIRED, MIN_RANKED = 4, 10
"""Smallest number of networks for a mean over pairs, and for a rank correlation."""
LEARNED = 0.97
"""Accuracy above which the source counts a network as trained."""

trainings = Replication("training", "seeds")
standard_trainings = Replication("training", "standard_seeds")
grid_trainings = Replication("training", "grid_seeds")


def _select_by_seed(rows: Rows, arm: str, column: str) -> "Series[float]":
    return rows.where("network", arm=arm).groupby("seed")[column].mean()


def _count_closed(rows: Rows, arm: str) -> Counts:
    trials = _select_by_seed(rows, arm, "closings")
    return Counts((_select_by_seed(rows, arm, "inside") * trials).round(), trials)


@trainings
def minimal(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measurement of networks whose first layer is a fixed embedding of brackets.

    The networks are trained to predict closing brackets.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Way of training, for example "words" (on complete strings) or "words, decay" (with weight decay).
        column: Name of the column. For example, "inside" is the accuracy on closing brackets in strings of the training
            length.

    Returns:
        One number per training seed.
    """
    return _select_by_seed(rows, arm, column)


@standard_trainings
def standard(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Return a measurement of networks with two transformer layers.

    The networks are trained to predict closing brackets.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Variant of the network, for example "standard", or "standard, uniform" (uniform attention weights).
        column: Name of the column. For example, "inside" is the accuracy on closing brackets in strings of the training
            length.

    Returns:
        One number per training seed.
    """
    return _select_by_seed(rows, arm, column)


@grid_trainings
def setting_closed(rows: Rows, setting: GridSetting) -> "Series[float]":
    """Return the accuracy with which networks of one size predict closing brackets.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        setting: Row of the table: number of bracket types, largest number of open brackets, and number of layers.

    Returns:
        One accuracy per training seed.
    """
    return rows.where("setting", **setting._asdict()).groupby("seed").inside.mean()


@exact
def learned_share(rows: Rows) -> float:
    """Return the fraction of networks that predict more than 97 % of the closing brackets correctly.

    The fraction is computed for each combination of hyperparameters, and the smallest one is returned.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return min(float((setting_closed(setting)(rows) > LEARNED).mean()) for setting in SETTINGS)


@trainings
def closed(rows: Rows, arm: str) -> Counts:
    """Count the closing brackets that networks with a fixed embedding layer predict correctly.

    The networks read strings of the training length.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Way of training, for example "words" (on complete strings) or "words, decay" (with weight decay).

    Returns:
        Number of correct predictions and number of closing brackets, per training seed.
    """
    return _count_closed(rows, arm)


@standard_trainings
def standard_closed(rows: Rows, arm: str) -> Counts:
    """Count the closing brackets that networks with two transformer layers predict correctly.

    The networks read strings of the training length.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Variant of the network, for example "standard", or "standard, uniform" (uniform attention weights).

    Returns:
        Number of correct predictions and number of closing brackets, per training seed.
    """
    return _count_closed(rows, arm)


@trainings
def variation(rows: Rows, arm: str) -> "Series[float]":
    """Return the squared distance between the attention weights of networks with different seeds, as a ratio.

        variation = mean over pairs of networks of |A - B|^2 / (expected |A - B|^2 of random causal attention)

    A and B are the attention weights of two networks on the same prefix of a bracket string. The first layer of the
    networks is a fixed embedding of brackets.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Way of training, for example "words" (on complete strings) or "words, decay" (with weight decay).

    Returns:
        One number per training seed, whose mean is the variation (jackknife pseudo-values).
    """
    return _compute_variation(rows, arm, 1)


@standard_trainings
def standard_variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    """Return the squared distance between attention weights of two-layer networks with different seeds, as a ratio.

        variation = mean over pairs of networks of |A - B|^2 / (expected |A - B|^2 of random causal attention)

    A and B are the attention weights of two networks in the same layer, on the same prefix of a bracket string.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Variant of the network, for example "standard", or "standard, uniform" (uniform attention weights).
        layer: Number of the layer, 1 or 2.

    Returns:
        One number per training seed, whose mean is the variation (jackknife pseudo-values).
    """
    return _compute_variation(rows, arm, layer)


@grid_trainings
def setting_variation(rows: Rows, setting: GridSetting, layer: int) -> "Series[float]":
    """Return the squared distance between attention weights of networks with different seeds, as a ratio.

        variation = mean over pairs of networks of |A - B|^2 / (expected |A - B|^2 of random causal attention)

    A and B are the attention weights of two networks in the same layer. |A - B|^2 is averaged over 40 bracket strings.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        setting: Hyperparameters of the networks: number of bracket types, largest number of open brackets, and number
            of layers.
        layer: Number of the layer, from 1.

    Returns:
        One number per training seed, whose mean is the variation (jackknife pseudo-values).
    """
    return _compute_setting_variation(rows, setting, layer)


@grid_trainings
def table_variation(rows: Rows, layer: int, least_layers: int = 2) -> "Series[float]":
    """Return how much the attention weights of networks with different training seeds differ.

    The difference is a squared distance, relative to random attention (see `setting_variation`). It is averaged over
    all combinations of hyperparameters, which are the rows of Table 2.6 of the thesis.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        layer: Number of the layer whose attention weights are compared, from 1.
        least_layers: Smallest number of layers of the networks. Combinations with fewer layers are omitted.

    Returns:
        One number per training seed, whose mean is the averaged variation (jackknife pseudo-values).
    """
    found = [
        _compute_setting_variation(rows, each, layer) for each in SETTINGS if each.layers >= least_layers
    ]
    means: Series[float] = concat(found, axis=1).mean(axis=1)
    return means


@trainings
def rank_correlation(
    rows: Rows, arm: str, accuracy: str = "outside", violation: str = "balance"
) -> "Series[float]":
    """Return the Spearman correlation between the balance violation of networks and their errors on long strings.

    The networks predict closing brackets. The balance violation is zero if each opening bracket and its closing bracket
    cancel in the attention sums. The error is the fraction of closing brackets at positions 400 to 500 that a network
    predicts incorrectly.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        arm: Way of training, for example "words" (on complete strings) or "words, decay" (with weight decay).
        accuracy: Column with one minus the error: "outside", or "outside_confident" as defined in the
            released program.
        violation: Column of the violation: "balance", or "balance_released" as defined in the released
            program.

    Returns:
        One number per training seed, whose mean is the correlation (jackknife pseudo-values).

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
    """Return the fraction of trained networks for which a theoretical bound on their attention is not trivial.

    Theorem 2.2.2 states that matched brackets nearly cancel in the attention sums of a network with small errors. Its
    bound is trivial if the errors of the network are too large.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return float((rows["network"].positive.dropna() > 0).mean())


@exact
def inequalities_failed(rows: Rows) -> float:
    """Return the number of inequalities in the proof of a theorem that trained networks violate.

    The theorem states that matched brackets nearly cancel in the attention sums of a network with small errors. Each
    inequality of the proof is evaluated for several prefixes per network.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
    """
    return float(rows["network"].violations.sum())


def parse_pattern(row: "Series[str]") -> np.ndarray:
    """Parse the attention weights (T, T) of a measured row.

    Args:
        row: Row with the weights as JSON in the column "weights".
    """
    return np.array(json.loads(row["weights"]))


def _compute_variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    table = rows.where("pattern", arm=arm, layer=layer).sort_values("seed")
    if table.empty:
        raise NoRows(arm)
    patterns = np.stack([parse_pattern(row) for _, row in table.iterrows()])
    distances = np.square(patterns[:, None] - patterns).sum((2, 3)) / causal_baseline(patterns.shape[1])
    return pair_values(table.seed.tolist(), distances, MIN_PAIRED)


def _compute_setting_variation(rows: Rows, setting: GridSetting, layer: int) -> "Series[float]":
    table = rows.where("pair", layer=layer, **setting._asdict())
    if table.empty:
        raise NoRows(str(setting))
    seeds = sorted({*table.seed, *table.other})
    one_way = table.pivot(index="seed", columns="other", values="variation")
    distances = one_way.reindex(index=seeds, columns=seeds).fillna(0.0).to_numpy()
    return pair_values(seeds, (distances + distances.T) / causal_baseline(SENTENCE + 1), MIN_PAIRED)
