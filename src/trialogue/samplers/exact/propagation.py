"""Expected visits of Markov chains that rarely return to a state, by following the probability along the moves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from trialogue.compilation import compiled

Floats = NDArray[np.float64]

_MOST_SWEEPS = 100_000
"""Largest number of sweeps over all states. If more are needed, the rest of the visits is neglected."""


def has_cycles(transitions: csr_array) -> bool:
    """Return whether a chain with a sparse matrix (n, n) of transition probabilities can return to a state."""
    components, _ = connected_components(transitions, connection="strong")
    return bool(components < transitions.shape[0] or transitions.diagonal().any())


def propagate(transitions: csr_array, entered: Floats, smallest: float = 0.0) -> Floats:
    """Return the expected number of visits of each state.

    A sweep takes the states in ascending order. One sweep suffices if all moves lead to later states.

    Args:
        transitions: Sparse matrix (n, n) of transition probabilities.
        entered: Probability (n,) of starting in each state.
        smallest: Probability that may be neglected (default: 0).

    Returns:
        Expected numbers (n,).
    """
    visits, entered = np.zeros(len(entered)), entered.copy()
    for _ in range(_MOST_SWEEPS):
        if not entered.sum() > smallest:
            break
        _sweep(transitions.indptr, transitions.indices, transitions.data, entered, visits)
    return visits


@compiled
def _sweep(starts: Any, targets: Any, weights: Any, entered: Floats, visits: Floats) -> None:
    for state in range(len(visits)):
        mass = entered[state]
        if mass > 0:
            entered[state] = 0.0
            visits[state] += mass
            for index in range(starts[state], starts[state + 1]):
                entered[targets[index]] += mass * weights[index]
