"""How fast a chain of windows loses what only some of its windows keep: two leading eigenvalues and their ratio.

Of a chain at a low temperature the two may be closer than float64 tells apart, and their ratio is then no number to
report: small matrices are solved with as many digits as it takes, and larger ones refused.
"""

import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigs

from trialogue.data.potts_spectrum import DENSE_STATES, PRECISE_DIGITS, PRECISE_STATES
from trialogue.errors import InputError

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
    vocab, window = log_weights.shape[0], log_weights.ndim
    states = log_weights.size // vocab
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
    finite = log_weights[log_weights > -math.inf]
    digits = 30 + math.ceil(window * float(finite.max() - finite.min()) / math.log(10))
    if states > PRECISE_STATES or digits > PRECISE_DIGITS:
        raise InputError(
            "temperature",
            temperature,
            f"the rate is below {_RESOLVED:.0e} per site, or its weights are, which float64 does not resolve for "
            f"{states} states: use a higher one",
        )
    close = [masks for masks, log in zip(kept, logs, strict=True) if log > most - _CLOSE]
    return _precisely(log_weights, close if most > -math.inf else possible, digits)


def transfer_matrix(weights: NDArray[np.float64]) -> csr_array:
    """The matrix of steps with these weights (V,) * W between the V^(W-1) contexts."""
    states = weights.size // weights.shape[0]
    matrix = csr_array((weights.ravel(), _steps(weights)), (states, states))
    matrix.eliminate_zeros()
    return matrix


def leading_eigenvalue(matrix: csr_array, temperature: float) -> float:
    """The largest eigenvalue of a matrix without negative entries; `temperature` is what an `InputError` names."""
    # Between components an entry changes no eigenvalue, but makes equal ones of theirs inaccurate.
    within = _within_components(matrix)
    states = within.shape[0]
    if within.nnz == 0:
        return 0.0
    if states <= DENSE_STATES:
        return float(np.abs(np.linalg.eigvals(within.toarray())).max())
    try:
        (value,) = eigs(within, 1, which="LM", return_eigenvectors=False, v0=np.ones(states))
    except ArpackError as error:
        mend = f"no eigenvalue of {states} states found ({error}): use a higher one"
        raise InputError("temperature", temperature, mend) from None
    return float(abs(value))


def _coming_back(log_weights: NDArray[np.float64]) -> Mask:
    """Windows (V,) * W of sequences that can show them again."""
    allowed = log_weights > -math.inf
    _, component = connected_components(transfer_matrix(allowed.astype(float)), connection="strong")
    source, target = _steps(log_weights)
    found: Mask = allowed & (component[source] == component[target]).reshape(allowed.shape)
    return found


def _steps(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The contexts (V^W,) before and after the last token of every window."""
    vocab = weights.shape[0]
    windows = np.arange(weights.size)
    return windows // vocab, windows % (weights.size // vocab)


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
    states = log_weights.size // log_weights.shape[0]
    source, target = (contexts.tolist() for contexts in _steps(log_weights))
    exponents = log_weights.ravel().tolist()

    def step(mask: Mask) -> mpmath.matrix:
        matrix = mpmath.zeros(states)
        for window in np.flatnonzero(mask).tolist():
            matrix[source[window], target[window]] += mpmath.exp(exponents[window])
        return matrix

    def log_leading(masks: Sequence[Mask]) -> Any:
        matrix = step(masks[0])
        for mask in masks[1:]:
            matrix = matrix * step(mask)
        if states == 1:
            return mpmath.log(matrix[0, 0])
        values = mpmath.eig(matrix, left=False, right=False)
        return mpmath.log(max(abs(value) for value in values)) / len(masks)

    with mpmath.workdps(digits):
        most = max(log_leading(masks) for masks in kept)
        return float(log_leading([np.ones_like(kept[0][0])]) - most)
