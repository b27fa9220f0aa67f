"""Approximation of a distribution without interactions of more than k tokens.

It is the distribution with the largest entropy among all that have the same marginals of any k positions. Its
log-probability is a sum of functions of k tokens each. It is computed by iterative proportional fitting
(Deming and Stephan 1940).
"""

import math
from itertools import combinations
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.validation import Count, Positive, validated

_ROUNDS = 100_000


@validated
def truncate_orders(
    probabilities: Annotated[Tensor, Reals("V*")], order: Count, tolerance: Positive = 1e-11
) -> Tensor:
    """Return the maximum-entropy distribution with the same marginals of any k positions.

    Its log-probability is a sum of functions of k tokens each, so interactions of more tokens are removed.

    Args:
        probabilities: Positive probabilities (V, ..., V) with one axis for each of N positions.
        order: Number k of positions in a marginal, at most N.
        tolerance: Largest error of a marginal at which the iteration stops.

    Returns:
        Probabilities (V, ..., V) float64.

    Raises:
        InputError: If `order` exceeds N, the probabilities are not positive or do not sum to one, or the iteration does
            not reach `tolerance`.
    """
    table = probabilities.double()
    if order > table.ndim:
        raise InputError("order", order, f"use at most {table.ndim}")
    total = float(table.sum())
    if not bool((table > 0).all()) or not math.isclose(total, 1, abs_tol=1e-9):
        raise InputError("probabilities", total, "give positive probabilities that sum to one")
    distribution = (table / total).cpu().numpy()
    if order == table.ndim:
        return torch.from_numpy(distribution)
    axes = range(table.ndim)
    others = [tuple(axis for axis in axes if axis not in kept) for kept in combinations(axes, order)]
    targets = [distribution.sum(left_out, keepdims=True) for left_out in others]
    found: NDArray[np.float64] = np.full_like(distribution, 1 / distribution.size)
    for _ in range(_ROUNDS):
        worst = 0.0
        for left_out, target in zip(others, targets, strict=True):
            marginal = found.sum(left_out, keepdims=True)
            worst = max(worst, float(np.abs(marginal - target).max()))
            found = found * (target / marginal)
        if worst < tolerance:
            return torch.from_numpy(found / found.sum())
    hint = f"the error of a marginal is {worst:.2g} after {_ROUNDS} iterations. Use a larger tolerance"
    raise InputError("tolerance", tolerance, hint)
