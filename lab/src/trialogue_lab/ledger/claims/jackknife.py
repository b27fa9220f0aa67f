"""Pseudo-values: one number per replication, of a statistic that takes all replications at once.

A rank correlation, or a mean over all pairs, has no value of its own for one replication. What it loses when one is
left out has: pseudo_values(seeds, correlation).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from pandas import Series

from trialogue_lab.ledger.rows import NoRows


def pseudo_values(
    labels: Sequence[int], statistic: Callable[[list[int]], float], fewest: int
) -> "Series[float]":
    """n theta - (n - 1) theta_i by label i (n,): `statistic` theta of all labels, theta_i of all but i (Tukey 1958).

    Their mean is the statistic less its bias of first order, and Student's interval over them is one of the statistic.
    Raises `NoRows` for fewer labels than `fewest`.
    """
    count = len(labels)
    if count < fewest:
        raise NoRows(f"{count} replications, where the statistic needs {fewest}")
    total = count * statistic(list(labels))
    without = {label: statistic([other for other in labels if other != label]) for label in labels}
    return Series({label: total - (count - 1) * value for label, value in without.items()})


def pair_values(labels: Sequence[int], between: NDArray[np.float64], fewest: int) -> "Series[float]":
    """Pseudo-values of the mean over all pairs, of numbers `between` (n, n) two labels; the diagonal is not read.

    Their mean is that mean exactly. On average their variance is above its own (Efron and Stein 1981).
    """
    place = {label: index for index, label in enumerate(labels)}
    upper = np.triu(between, 1)

    def mean(chosen: list[int]) -> float:
        index = [place[label] for label in chosen]
        return float(upper[np.ix_(index, index)].sum()) / (len(index) * (len(index) - 1) / 2)

    return pseudo_values(labels, mean, max(3, fewest))
