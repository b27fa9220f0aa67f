"""How fast a chain of windows loses what only some of its windows keep: two leading eigenvalues and their ratio.

Of a chain at a low temperature the two may be closer than float64 tells apart, and their ratio is then no number to
report: small matrices are solved with as many digits as it takes, and larger ones refused.
"""

import math
from collections.abc import Sequence

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from trialogue.data.potts.spectrum import (
    digits_resolved,
    leading_moduli,
    precise_moduli,
    precise_transfer_matrix,
    steps,
    transfer_matrix,
)

_RESOLVED = 1e-11
"""Smaller rates have less than three or four digits in float64."""
_CLOSE = 1e-6
"""Ways to keep whose rates differ by more are told apart in float64."""

Mask = NDArray[np.bool_]


def kept_decay(log_weights: NDArray[np.float64], kept: Sequence[Sequence[Mask]], temperature: float) -> float:
    """Rate c at which the probability that all windows are among the kept falls, P ~ exp(-c L), in nats per site.

    `log_weights` (V,) * W; -inf are forbidden. `kept` holds one or more ways to keep, of which one has to hold for all
    windows: masks (V,) * W, one for each place in a period. It is log(lambda / lambda_kept) per site, zero where all
    windows that can come back are kept, and inf where no sequence can go on for ever. Raises `InputError`, which names
    the `temperature`, where the eigenvalues of more than `PRECISE_STATES` states are closer than float64 resolves.
    """
    coming_back = _coming_back(log_weights)
    if any(all(mask[coming_back].all() for mask in masks) for masks in kept):
        return 0.0
    weights = np.exp(log_weights)
    logs = [_log(leading_eigenvalue(_product(weights, masks), temperature)) / len(masks) for masks in kept]
    most = max(logs)
    rate = _log(leading_eigenvalue(transfer_matrix(weights), temperature)) - most
    if rate >= _RESOLVED and most > -math.inf:
        return rate
    possible = [masks for masks in kept if _cycles(log_weights, masks)]
    if not possible:
        return math.inf
    unresolved = f"the rate is below {_RESOLVED:.0e} per site, or its weights are"
    digits = digits_resolved(log_weights, log_weights.ndim, temperature, unresolved)
    close = [masks for masks, log in zip(kept, logs, strict=True) if log > most - _CLOSE]
    return _precisely(log_weights, close if most > -math.inf else possible, digits)


def leading_eigenvalue(matrix: csr_array, temperature: float) -> float:
    """The largest eigenvalue of a matrix without negative entries; `temperature` is what an `InputError` names."""
    # Between components an entry changes no eigenvalue, but makes equal ones of theirs inaccurate.
    within = _within_components(matrix)
    return float(leading_moduli(within, 1, temperature)[0]) if within.nnz else 0.0


def _coming_back(log_weights: NDArray[np.float64]) -> Mask:
    """Windows (V,) * W of sequences that can show them again."""
    allowed = log_weights > -math.inf
    _, component = connected_components(transfer_matrix(allowed.astype(float)), connection="strong")
    source, target = steps(log_weights)
    found: Mask = allowed & (component[source] == component[target]).reshape(allowed.shape)
    return found


def _product(weights: NDArray[np.float64], masks: Sequence[Mask]) -> csr_array:
    """The matrix of one period of steps through windows that are kept."""
    matrix = transfer_matrix(weights * masks[0])
    for mask in masks[1:]:
        matrix = matrix @ transfer_matrix(weights * mask)
    return matrix


def _cycles(log_weights: NDArray[np.float64], masks: Sequence[Mask]) -> bool:
    """Whether windows that are kept can go on for ever, whatever their weight."""
    return _within_components(_product((log_weights > -math.inf).astype(float), masks)).nnz > 0


def _within_components(matrix: csr_array) -> csr_array:
    """The entries between states that lead to each other."""
    _, component = connected_components(matrix, connection="strong")
    entries = matrix.tocoo()
    inside = component[entries.row] == component[entries.col]
    chosen = (entries.data[inside], (entries.row[inside], entries.col[inside]))
    return csr_array(chosen, matrix.shape)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _precisely(log_weights: NDArray[np.float64], kept: Sequence[Sequence[Mask]], digits: int) -> float:
    def log_leading(masks: Sequence[Mask]) -> mpmath.mpf:
        matrix = precise_transfer_matrix(log_weights, masks[0])
        for mask in masks[1:]:
            matrix = matrix * precise_transfer_matrix(log_weights, mask)
        return mpmath.log(precise_moduli(matrix)[0]) / len(masks)

    with mpmath.workdps(digits):
        most = max(log_leading(masks) for masks in kept)
        return float(mpmath.log(precise_moduli(precise_transfer_matrix(log_weights))[0]) - most)
