"""Statistics of the study about gradient flow of a two-layer network that predicts one token from the others.

The network predicts the token x_0 as A2 . (x + (A1 x)^2). The last layer A2 learns interactions of x_0 with one other
token. The first layer A1 learns its interactions with two other tokens. Each statistic has one number per random
distribution of the tokens.
"""

from pandas import Series

from trialogue_lab.ledger import Replication, Rows

distributions = Replication("draw", "seeds")


@distributions
def kept(rows: Rows, decays: bool = False) -> "Series[float]":
    """Return how much of a network's first layer is left after gradient flow, as a ratio of norms (final / initial).

    The network predicts one token from the others as A2 . (x + (A1 x)^2), where A1 is its first layer. The tokens are
    Gaussian. The first layer then has nothing to learn, because only pairs of tokens interact.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        decays: Whether the gradient flow includes weight decay.

    Returns:
        One ratio per seed of the distribution.
    """
    return rows.where("decay", decays=decays).set_index("seed").share


@distributions
def growth(rows: Rows, column: str) -> "Series[float]":
    """Return the exponential growth rate of a network's first layer, or a related measurement.

    The network predicts one token from the others as A2 . (x + (A1 x)^2), where A1 is its first layer. A1 is close to
    zero and follows the gradient flow, while A2 is fixed. The tokens have three-body interactions.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        column: "rate" for the growth rate by the corrected equation 13. "fitted" for the rate of the numerically
            integrated flow. "error" for their relative difference. "printed_rate" is the published rate. "diagonal" and
            "off_diagonal" compare the derivative of A1 with its published formula.

    Returns:
        One number per seed of the distribution.
    """
    return rows["growth"].set_index("seed")[column]


@distributions
def example(rows: Rows, positive: bool, both_signs: bool, column: str = "rate") -> "Series[float]":
    """Return the exponential growth rate of a network's first layer, for independent skewed tokens.

    The network predicts one token from the others as A2 . (x + (A1 x)^2), where A1 is its first layer. A1 is close to
    zero and follows the gradient flow, while A2 is fixed. The paper gives this distribution of tokens as an example.

    Args:
        rows: Measurements of a run, one DataFrame per kind of measurement.
        positive: Whether the third moments of the tokens are positive.
        both_signs: Whether A2 has positive and negative entries.
        column: "rate" (default), or "printed_rate" for the largest eigenvalue of the published matrix.

    Returns:
        One rate per seed of A2. It is negative if A1 decreases to zero.
    """
    return rows.where("example", positive=positive, both_signs=both_signs).set_index("seed")[column]
