"""Statistics of the study, with one number per trained network."""

from pandas import Series

from trialogue_lab.ledger import Counts, Replication, Rows

trainings = Replication("training", "seeds")


@trainings
def copied(rows: Rows, arm: str, column: str = "copied") -> Counts:
    """Number of copied tokens. The column "uniform" is for networks whose attention is made uniform."""
    table = rows.where("network", arm=arm).set_index("seed")
    return Counts((table[column] * table.tokens).round(), table.tokens)


@trainings
def lost(rows: Rows, arm: str) -> Counts:
    """Number of copied tokens minus the number of copied tokens with uniform attention."""
    table = rows.where("network", arm=arm).set_index("seed")
    return Counts(((table.copied - table.uniform) * table.tokens).round(), table.tokens)


@trainings
def last_layer(rows: Rows, arm: str, column: str) -> "Series[float]":
    """Value of a column in the last layer."""
    return rows.where("layer", arm=arm).sort_values("layer").groupby("seed")[column].last()


@trainings
def sharpest(rows: Rows, arm: str) -> "Series[float]":
    """Largest distance of a layer from uniform attention, relative to the distance of two random patterns."""
    return rows.where("layer", arm=arm).groupby("seed").from_uniform.max()
