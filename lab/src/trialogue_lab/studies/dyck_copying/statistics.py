"""Quantities of the study, by trained network."""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows
from trialogue_lab.ledger.claims.statistics import Counts

trainings = Replication("training", "seeds")


@trainings
def copied(rows: Rows, arm: str, column: str = "copied") -> Counts:
    """How many tokens are copied; `column` "uniform": with uniform attention in place of the network's own."""
    table = rows.where("network", arm=arm).groupby("seed").mean(numeric_only=True)
    return Counts((table[column] * table.tokens).round(), table.tokens)


@trainings
def lost(rows: Rows, arm: str) -> Counts:
    """How many tokens are copied no more with uniform attention."""
    table = rows.where("network", arm=arm).groupby("seed").mean(numeric_only=True)
    return Counts(((table["copied"] - table["uniform"]) * table.tokens).round(), table.tokens)


@trainings
def layer(rows: Rows, arm: str, column: str, place: int) -> "Series[float]":
    """What is seen in a layer."""
    return rows.where("layer", arm=arm, layer=place).groupby("seed")[column].mean()


@trainings
def sharpest(rows: Rows, arm: str) -> "Series[float]":
    """How far the layer that is furthest from uniform attention is, over how far two random patterns are apart."""
    return rows.where("layer", arm=arm).groupby("seed").from_uniform.max()
