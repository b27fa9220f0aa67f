"""Quantities of the study: per law, and worst cases over all of them."""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows

laws = Replication("draw", "seeds")


@laws
def kept(rows: Rows, decays: bool = False) -> "Series[float]":
    """The first layer's norm after the flow on Gaussian tokens, as a share of what it was."""
    return rows.where("decay", decays=decays).set_index("seed").share


@laws
def growth(rows: Rows, column: str) -> "Series[float]":
    """A number of the first layer's growth on tokens of three bodies."""
    return rows["growth"].set_index("seed")[column]


@laws
def example(rows: Rows, positive: bool, both_signs: bool, column: str = "rate") -> "Series[float]":
    """A number of the printed example, by the sign of the third moments and those of the last layer."""
    return rows.where("example", positive=positive, both_signs=both_signs).set_index("seed")[column]
