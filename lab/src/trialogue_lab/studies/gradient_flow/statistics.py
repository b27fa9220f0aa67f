"""Statistics of the study about gradient flow of a two-layer network that predicts token x_0 from the other tokens.

The first layer A1 represents three-body interactions, and the last layer A2 represents two-body interactions. Each
statistic has one number per random distribution of the tokens.
"""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows

distributions = Replication("draw", "seeds")


@distributions
def kept(rows: Rows, decays: bool = False) -> "Series[float]":
    """Return the ratio of the final to the initial norm of the first layer on Gaussian tokens.

    Args:
        rows: Measured rows of a run, by kind.
        decays: Whether the flow has weight decay.

    Returns:
        One ratio per seed of the distribution.
    """
    return rows.where("decay", decays=decays).set_index("seed").share


@distributions
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return a measured value of the growth of the first layer on tokens with three-body interactions.

    Args:
        rows: Measured rows of a run, by kind.
        column: "rate" (growth rate by equation 13), "fitted" (rate of the integrated flow), "error" (their relative
            difference), "printed_rate", "diagonal" or "off_diagonal".

    Returns:
        One value per seed of the distribution.
    """
    return rows["growth"].set_index("seed")[column]


@distributions
def example(rows: Rows, positive: bool, both_signs: bool, column: str = "rate") -> "Series[float]":
    """Return the growth rate of the first layer in the published example of independent skewed tokens.

    Args:
        rows: Measured rows of a run, by kind.
        positive: Whether the third moments of the tokens are positive.
        both_signs: Whether the entries of the last layer have both signs.
        column: "rate" (default), or "printed_rate" for the largest eigenvalue of the published matrix.

    Returns:
        One rate per seed of the last layer.
    """
    return rows.where("example", positive=positive, both_signs=both_signs).set_index("seed")[column]
