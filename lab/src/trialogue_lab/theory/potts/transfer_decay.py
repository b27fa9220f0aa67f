"""Rate at which the probability that all windows of a Potts chain belong to a given set decays.

The rate is the log ratio of two leading eigenvalues of transfer matrices, which have the entry exp(-energy / T) for
each window. At low temperature, the eigenvalues can be closer than float64 resolves. Small matrices are then solved
with higher precision, and larger ones are rejected.
"""

import math
from collections.abc import Sequence

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from trialogue.data.potts.spectrum import (
    leading_moduli,
    matrix_positions,
    precise_moduli,
    precise_transfer_matrix,
    required_digits,
    transfer_matrix,
)

_RESOLVED = 1e-11
"""Smallest rate with three to four significant digits in float64."""
_CLOSE = 1e-6
"""Difference of rates above which float64 distinguishes two sets of windows."""

Mask = NDArray[np.bool_]


def compute_decay_rate(
    log_weights: NDArray[np.float64], kept: Sequence[Sequence[Mask]], temperature: float
) -> float:
    """Return how fast the probability that all windows of a sequence belong to a given set falls with the length.

        rate = log(lambda / lambda_kept)

    A window consists of W neighboring tokens. lambda is the leading eigenvalue of the transfer matrix, and
    lambda_kept the leading one if only windows of the set are allowed. If there are several sets, all windows
    must belong to the same one.

    Args:
        log_weights: Log-weights -E / T of the windows, shape (V,) * W; -inf for forbidden windows.
        kept: Sets of windows. Each set is a list with one mask (V,) * W per position in a period.
        temperature: Temperature, for the error message.

    Returns:
        Rate in nats per token. It is zero if one set contains all windows that can occur repeatedly, and
        infinite if no infinite sequence has all its windows in one set.

    Raises:
        InputError: If the eigenvalues cannot be distinguished in float64 and there are more than
            `PRECISE_STATES` states.
    """
    recurrent = _find_recurrent_windows(log_weights)
    if any(all(mask[recurrent].all() for mask in masks) for masks in kept):
        return 0.0
    weights = np.exp(log_weights)
    logs = [
        _log(compute_leading_eigenvalue(_multiply_transfer_matrices(weights, masks), temperature))
        / len(masks)
        for masks in kept
    ]
    most = max(logs)
    rate = _log(compute_leading_eigenvalue(transfer_matrix(weights), temperature)) - most
    if rate >= _RESOLVED and most > -math.inf:
        return rate
    possible = [masks for masks in kept if _has_infinite_sequence(log_weights, masks)]
    if not possible:
        return math.inf
    unresolved = f"the rate is below {_RESOLVED:.0e} per site, or its weights are"
    digits = required_digits(log_weights, log_weights.ndim, temperature, unresolved)
    close = [masks for masks, log in zip(kept, logs, strict=True) if log > most - _CLOSE]
    return _compute_precise_decay_rate(log_weights, close if most > -math.inf else possible, digits)


def compute_leading_eigenvalue(matrix: csr_array, temperature: float) -> float:
    """Return the largest eigenvalue of a sparse matrix with non-negative entries.

    Args:
        matrix: Square matrix.
        temperature: Temperature, for the error message.
    """
    # Entries between components do not change eigenvalues, but make degenerate ones inaccurate.
    within = _remove_transient_entries(matrix)
    return float(leading_moduli(within, 1, temperature)[0]) if within.nnz else 0.0


def _find_recurrent_windows(log_weights: NDArray[np.float64]) -> Mask:
    """Return which windows can occur infinitely often in a sequence, (V,) * W bool."""
    allowed = log_weights > -math.inf
    _, component = connected_components(transfer_matrix(allowed.astype(float)), connection="strong")
    source, target = matrix_positions(log_weights)
    found: Mask = allowed & (component[source] == component[target]).reshape(allowed.shape)
    return found


def _multiply_transfer_matrices(weights: NDArray[np.float64], masks: Sequence[Mask]) -> csr_array:
    """Multiply the transfer matrices of one period. Each contains only the windows in its mask."""
    matrix = transfer_matrix(weights * masks[0])
    for mask in masks[1:]:
        matrix = matrix @ transfer_matrix(weights * mask)
    return matrix


def _has_infinite_sequence(log_weights: NDArray[np.float64], masks: Sequence[Mask]) -> bool:
    """Return whether an infinite sequence exists whose windows are all allowed by `masks`."""
    return (
        _remove_transient_entries(
            _multiply_transfer_matrices((log_weights > -math.inf).astype(float), masks)
        ).nnz
        > 0
    )


def _remove_transient_entries(matrix: csr_array) -> csr_array:
    """Set transitions between states that cannot reach each other to zero."""
    _, component = connected_components(matrix, connection="strong")
    entries = matrix.tocoo()
    inside = component[entries.row] == component[entries.col]
    chosen = (entries.data[inside], (entries.row[inside], entries.col[inside]))
    return csr_array(chosen, matrix.shape)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _compute_precise_decay_rate(
    log_weights: NDArray[np.float64], kept: Sequence[Sequence[Mask]], digits: int
) -> float:
    def log_leading(masks: Sequence[Mask]) -> mpmath.mpf:
        matrix = precise_transfer_matrix(log_weights, masks[0])
        for mask in masks[1:]:
            matrix = matrix * precise_transfer_matrix(log_weights, mask)
        return mpmath.log(precise_moduli(matrix)[0]) / len(masks)

    with mpmath.workdps(digits):
        most = max(log_leading(masks) for masks in kept)
        return float(mpmath.log(precise_moduli(precise_transfer_matrix(log_weights))[0]) - most)
