"""Statistics of the study. Each returns one number per distribution."""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows

distributions = Replication("draw", "seeds")


@distributions
def kept(rows: Rows, decays: bool = False) -> "Series[float]":
    """Return the ratio of the final to the initial norm of the first layer on Gaussian tokens."""
    return rows.where("decay", decays=decays).set_index("seed").share


@distributions
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return a column of the rows about the growth of the first layer on tokens with three-body interactions."""
    return rows["growth"].set_index("seed")[column]


@distributions
def example(rows: Rows, positive: bool, both_signs: bool, column: str = "rate") -> "Series[float]":
    """Return a column of the rows about the published example.

    Args:
        rows: The rows of the result.
        positive: Whether the third moments are positive.
        both_signs: Whether the entries of the last layer have both signs.
        column: Name of the column.
    """
    return rows.where("example", positive=positive, both_signs=both_signs).set_index("seed")[column]
