"""Quantities of the study: by trained network, and by pair of networks that only seeds tell apart."""

import json

import numpy as np
from pandas import DataFrame, Series

from trialogue.analysis.attention_variation import causal_baseline
from trialogue.ledger import Replication, Rows, exact
from trialogue.ledger.claims.quantities import Counts
from trialogue.ledger.rows import NoRows

trainings = Replication("training", "seeds")
standard_trainings = Replication("training", "standard_seeds")
training_pairs = Replication("training", "pairs")
standard_pairs = Replication("training", "standard_pairs")


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


@trainings
def closed(rows: Rows, arm: str) -> Counts:
    """How many closing brackets of prefixes of the trained length minimal networks close rightly."""
    return _closed(rows, arm)


@standard_trainings
def standard_closed(rows: Rows, arm: str) -> Counts:
    """The same of the networks of two layers."""
    return _closed(rows, arm)


@training_pairs
def variation(rows: Rows, arm: str) -> "Series[float]":
    """Variation between two seeds on the nested prefix, over that of random causal attention."""
    return _variation(rows, arm, 1)


@standard_pairs
def standard_variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    """The same of a layer of the networks of two layers."""
    return _variation(rows, arm, layer)


@training_pairs
def discordance(rows: Rows, arm: str) -> Counts:
    """In how many pairs the network nearer to balance is the more accurate one on long prefixes; ties count half."""
    table = rows.where("network", arm=arm).set_index("seed")
    if table.empty:
        raise NoRows(arm)
    found = {}
    for first, second in _pairs(table):
        nearer = table.balance[first] - table.balance[second]
        better = table.outside[first] - table.outside[second]
        found[first] = 0.5 - 0.5 * float(np.sign(nearer * better))
    return Counts(Series(found), Series(found) * 0 + 1)


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


def _pairs(table: DataFrame) -> list[tuple[int, int]]:
    seeds = sorted(table.index)
    return list(zip(seeds[::2], seeds[1::2], strict=False))


def _variation(rows: Rows, arm: str, layer: int) -> "Series[float]":
    table = rows.where("pattern", arm=arm, layer=layer).set_index("seed")
    if table.empty:
        raise NoRows(arm)
    patterns = {seed: pattern(row) for seed, row in table.iterrows()}
    return Series(
        {
            first: float(np.square(patterns[first] - patterns[second]).sum())
            / causal_baseline(len(patterns[first]))
            for first, second in _pairs(table)
        }
    )
