"""Jackknife pseudo-values of statistics that are computed from all replications together.

A rank correlation, for example, has no value for a single replication. Its pseudo-values are one number per
replication, from which an interval is computed.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from pandas import Series

from trialogue_lab.ledger.rows import NoRows


def pseudo_values(
    labels: Sequence[int], statistic: Callable[[list[int]], float], fewest: int
) -> "Series[float]":
    """Return the jackknife pseudo-values of a statistic (Tukey 1958).

    The pseudo-value of replication i is n theta - (n - 1) theta_i. Here theta is the statistic of all n replications,
    and theta_i the statistic without replication i. The mean of the pseudo-values is the statistic with its first-order
    bias removed, and their Student interval is an interval of the statistic.

    Args:
        labels: Labels of the replications (n,).
        statistic: Function from a list of labels to a number.
        fewest: Smallest number of replications for which the statistic is computed.

    Returns:
        The pseudo-values by label (n,).

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
    """Return the pseudo-values of a mean over all pairs of replications.

    The mean of the pseudo-values is exactly the mean over pairs. The jackknife estimate of its variance is too large
    on average (Efron and Stein 1981).

    Args:
        labels: Labels of the replications (n,).
        between: The number of each pair (n, n). Only the part above the diagonal is used.
        fewest: Smallest number of replications for which the mean is computed. At least 3 are required.

    Returns:
        The pseudo-values by label (n,).
    """
    place = {label: index for index, label in enumerate(labels)}
    upper = np.triu(between, 1)

    def mean(chosen: list[int]) -> float:
        index = [place[label] for label in chosen]
        return float(upper[np.ix_(index, index)].sum()) / (len(index) * (len(index) - 1) / 2)

    return pseudo_values(labels, mean, max(3, fewest))
