"""Jackknife intervals for statistics of all replications together, for example a rank correlation.

Such a statistic has no value for a single replication. The jackknife assigns one to each ("pseudo-value"), so that the
usual confidence interval of a mean applies.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from pandas import Series

from trialogue_lab.ledger.rows import NoRows


def pseudo_values(
    labels: Sequence[int], statistic: Callable[[list[int]], float], fewest: int
) -> "Series[float]":
    """Split a statistic of all replications into one number per replication (jackknife, Tukey 1958).

    The pseudo-value of replication i is n theta - (n - 1) theta_i. Here theta is the statistic of all n replications
    and theta_i the statistic without replication i. The mean of the pseudo-values is theta with its first-order bias
    removed.

    Args:
        labels: Labels of the replications (n,), for example seeds.
        statistic: Function from a list of labels to a number.
        fewest: Smallest number of replications for which the statistic is computed.

    Returns:
        The pseudo-values (n,), indexed by label.

    Raises:
        NoRows: There are fewer replications than `fewest`.
    """
    count = len(labels)
    if count < fewest:
        raise NoRows(f"{count} replications, but the statistic needs {fewest}")
    total = count * statistic(list(labels))
    without = {label: statistic([other for other in labels if other != label]) for label in labels}
    return Series({label: total - (count - 1) * value for label, value in without.items()})


def pair_values(labels: Sequence[int], between: NDArray[np.float64], fewest: int) -> "Series[float]":
    """Split a mean over pairs of replications into one number per replication (jackknife).

    An example is the mean distance between two trained models. The mean of these pseudo-values is exactly the mean over
    pairs. The variance estimated from them is too large on average (Efron and Stein 1981).

    Args:
        labels: Labels of the replications (n,), for example seeds.
        between: The number of each pair (n, n). Only entries above the diagonal are used.
        fewest: Smallest number of replications, at least 3 in any case.

    Returns:
        The pseudo-values (n,), indexed by label.
    """
    place = {label: index for index, label in enumerate(labels)}
    upper = np.triu(between, 1)

    def mean(chosen: list[int]) -> float:
        index = [place[label] for label in chosen]
        return float(upper[np.ix_(index, index)].sum()) / (len(index) * (len(index) - 1) / 2)

    return pseudo_values(labels, mean, max(3, fewest))
