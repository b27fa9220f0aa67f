"""Exact output distribution of sampling and importance resampling (Rubin 1987).

The algorithm samples n outcomes from a proposal q and returns one of them with probability proportional to
its weight w. Outcome x is returned with probability n q(x) E[w(x) / (w(x) + S)], where S is the sum of the
weights of the other outcomes. The expectation is computed as an integral over one variable:

    w / (w + S) = integral over t > 0 of w exp(-t w) exp(-t S),
    E[exp(-t S)] = (sum over x of q(x) exp(-t w(x)))^(n - 1).
"""

import math
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.validation import Count, validated

Array = NDArray[np.float64]
Weights = Annotated[ArrayLike, Reals("outcomes", least=0)]
_STEP = 0.25
_NEGLIGIBLE = 1e-17
_POINTS_AT_ONCE = 64


@validated
def resampled_distribution(proposal: Weights, weights: Weights, number: Count) -> Array:
    """Return the output distribution of sampling and importance resampling.

    The algorithm samples `number` outcomes from the proposal and returns one of them with probability
    proportional to its weight. If the probabilities of the proposal sum to less than one, the remainder is a
    failed sample of weight zero. If all weights are zero, no outcome is returned, so the result may also sum
    to less than one.

    Args:
        proposal: Probabilities (k,) of the k outcomes under the proposal.
        weights: Non-negative weights (k,) of the outcomes.
        number: Number of samples n.

    Returns:
        Probabilities (k,), exact up to rounding.

    Raises:
        InputError: If a number is negative or not finite, the shapes differ, or the probabilities sum to more
            than 1.
    """
    q, w = (np.asarray(values, dtype=np.float64) for values in (proposal, weights))
    if len(q) != len(w):
        raise InputError("weights", len(w), f"give one for each of the {len(q)} outcomes of the proposal")
    if q.sum() > 1 + 1e-9:
        raise InputError("proposal", float(q.sum()), "give probabilities whose sum is at most 1")
    distribution, positive = np.zeros(len(q)), np.flatnonzero((q > 0) & (w > 0))
    if not len(positive):
        return distribution
    own, nothing = q[positive], max(0.0, 1.0 - q[positive].sum())
    # Only ratios of weights matter, so the largest is set to 1.
    scaled = w[positive] / w[positive].max()
    first, last = math.log(_NEGLIGIBLE), math.log(-math.log(_NEGLIGIBLE) / scaled.min())
    times = np.exp(np.arange(first, last + _STEP, _STEP))
    shares = np.zeros(len(positive))
    for points in np.array_split(times, math.ceil(len(times) / _POINTS_AT_ONCE)):
        decays = np.exp(-points[:, None] * scaled)
        others = (decays @ own + nothing) ** (number - 1)
        shares += (points * others) @ (scaled * decays)
    distribution[positive] = number * own * shares * _STEP
    return distribution
