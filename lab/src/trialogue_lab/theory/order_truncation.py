"""The part of a law that interactions of at most k sites make up, exactly: what clones of a corpus stand for.

Of all laws with the marginals of every k sites of p, the one of largest entropy is the only one whose log-probability
is a sum of functions of k sites each: the projection of p on laws of k-body interactions. It is found by iterative
proportional fitting (Deming and Stephan 1940), which scales to one marginal after another.
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
def keep_orders(
    probabilities: Annotated[Tensor, Reals("V*")], order: Count, tolerance: Positive = 1e-11
) -> Tensor:
    """The law (V, ..., V) float64 of interactions of at most `order` sites with the marginals that `probabilities` has.

    `probabilities` (V, ..., V) are positive and of N axes. Rounds end where every marginal of `order` sites is met to
    `tolerance`. Raises `InputError` for another shape, an order above N, and laws that are not positive or do not sum
    to one.
    """
    table = probabilities.double()
    if order > table.ndim:
        raise InputError("order", order, f"use at most {table.ndim}")
    total = float(table.sum())
    if not bool((table > 0).all()) or not math.isclose(total, 1, abs_tol=1e-9):
        raise InputError("probabilities", total, "give positive probabilities that sum to one")
    law = (table / total).cpu().numpy()
    if order == table.ndim:
        return torch.from_numpy(law)
    axes = range(table.ndim)
    others = [tuple(axis for axis in axes if axis not in kept) for kept in combinations(axes, order)]
    targets = [law.sum(left_out, keepdims=True) for left_out in others]
    found: NDArray[np.float64] = np.full_like(law, 1 / law.size)
    for _ in range(_ROUNDS):
        worst = 0.0
        for left_out, target in zip(others, targets, strict=True):
            marginal = found.sum(left_out, keepdims=True)
            worst = max(worst, float(np.abs(marginal - target).max()))
            found = found * (target / marginal)
        if worst < tolerance:
            return torch.from_numpy(found / found.sum())
    hint = f"marginals are still {worst:.2g} off after {_ROUNDS} rounds: use a larger tolerance"
    raise InputError("tolerance", tolerance, hint)
