"""Statistics of the study about gradient flow of a two-layer network that predicts token x_0 from the other tokens.

The last layer A2 learns interactions of x_0 with one other token, and the first layer A1 those with two other tokens.
Each statistic has one number per random distribution of the tokens.
"""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows

distributions = Replication("draw", "seeds")


@distributions
def kept(rows: Rows, decays: bool = False) -> "Series[float]":
    """Return how much of a network's first layer remains after gradient flow.

    It is the ratio of the final to the initial norm. The network has two layers and predicts one token from the others.
    The tokens are Gaussian, so that the first layer has nothing to learn.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        decays: Whether the flow has weight decay.

    Returns:
        One ratio per seed of the distribution.
    """
    return rows.where("decay", decays=decays).set_index("seed").share


@distributions
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return a measured value of the growth of a network's first layer under gradient flow.

    The network has two layers and predicts one token from the others. The tokens have three-body interactions, which
    the first layer learns.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        column: "rate" for the growth rate by equation 13, "fitted" for the rate of the numerically integrated flow,
            "error" for their relative difference, or another column: "printed_rate", "diagonal" or "off_diagonal".

    Returns:
        One value per seed of the distribution.
    """
    return rows["growth"].set_index("seed")[column]


@distributions
def example(rows: Rows, positive: bool, both_signs: bool, column: str = "rate") -> "Series[float]":
    """Return the growth rate of a network's first layer in the published example.

    Its tokens are independent and skewed. The network has two layers and predicts one token from the others. Its first
    layer is small and grows under gradient flow, while the last layer is given.

    Args:
        rows: Measurements of a run, as one table per kind of row.
        positive: Whether the third moments of the tokens are positive.
        both_signs: Whether the entries of the last layer have both signs.
        column: "rate" (default), or "printed_rate" for the largest eigenvalue of the published matrix.

    Returns:
        One rate per seed of the last layer.
    """
    return rows.where("example", positive=positive, both_signs=both_signs).set_index("seed")[column]
