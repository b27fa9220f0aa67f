"""Statistics of the study.

Statistics of networks with noise have one number per network. Those of the inequalities have one number for the run.
"""

import numpy as np
from pandas import Series

from trialogue_lab.ledger import Replication, Rows, exact

networks = Replication("draw", "seeds")


@networks
def accuracy(rows: Rows, disturbance: float, longest: int) -> "Series[float]":
    """Share of prefixes of up to `longest` brackets for which the correct type is the most probable to close."""
    table = rows.where("disturbed", disturbance=disturbance, longest=longest)
    return table.groupby("seed").accuracy.mean()


@networks
def violation(rows: Rows, disturbance: float) -> "Series[float]":
    """Balance violation as defined in the thesis."""
    return rows.where("disturbed", disturbance=disturbance).groupby("seed").violation.mean()


@networks
def distance(rows: Rows, disturbance: float, pairs: int) -> "Series[float]":
    """Distance of the normalized sums of two prefixes after a number of bracket pairs, as a median over prefixes."""
    return rows.where("pumped", disturbance=disturbance, pairs=pairs).groupby("seed").distance.mean()


@networks
def slope(rows: Rows, disturbance: float) -> "Series[float]":
    """Slope of log distance against log pairs, between 1,000 and 100,000 pairs."""
    far, near = (distance(disturbance, pairs)(rows) for pairs in (100_000, 1000))
    return (far / near).map(np.log10) / 2


@exact
def failed(rows: Rows, step: str) -> float:
    """Number of cases in which an inequality fails, over all networks."""
    return float(rows["chain"][step].sum())


@exact
def positive(rows: Rows, network: str) -> float:
    """Number of networks for which the first inequality has a positive side."""
    return float((rows.where("chain", network=network).positive > 0).sum())


@exact
def slack(rows: Rows, network: str) -> float:
    """Median over networks of the decimal logarithm of the bound divided by the largest |S|."""
    return float(rows.where("chain", network=network).slack.median())
