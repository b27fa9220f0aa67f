"""Transfer matrices of Potts chains, their leading eigenvalues, and the correlation length.

A window is W consecutive tokens, each one of V values. A context is W - 1 consecutive tokens. Both are encoded as
base-V numbers. The transfer matrix has one row and one column per context. Its entry is the weight of the window that
starts with the context of the row and ends with the context of the column, or 0 if no window does both.
"""

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, eigs
from torch import Tensor

from trialogue.errors import InputError
from trialogue.extras import from_extra
from trialogue.randomness import numpy_generator

if TYPE_CHECKING:
    import mpmath

DENSE_STATES = 512
"""Transfer matrices with more states use the sparse eigenvalue solver."""
RESOLVED = 1e-9
"""Smallest relative gap between two eigenvalues that float64 resolves."""
_MIN_BALANCING_STEPS, _MAX_BALANCING_STEPS = 64, 1024
_MAX_BALANCING_UPDATES = 2**28
"""Number of updated entries after which the balancing of a large matrix stops at the minimum number of steps."""
_BALANCE_TOLERANCE = 1.0
"""A matrix is balanced if the logarithms of its row sums differ by at most this value."""
PRECISE_STATES, PRECISE_DIGITS = 16, 1000
"""Maximum matrix size and number of decimal digits of the high-precision solver. Beyond them, it takes minutes."""


def correlation_length(log_weights: Tensor, vocab: int, window: int, temperature: float) -> float:
    """Return the correlation length 1 / log(lambda_1 / |lambda_2|) of the infinite chain, in sites.

    lambda_1 and lambda_2 are the two eigenvalues of the transfer matrix with the largest modulus. If float64 does not
    resolve them, small matrices are solved with mpmath in higher precision.

    Args:
        log_weights: Log-weights (V^W,) of the windows.
        vocab: Number V of tokens.
        window: Number W of tokens in a window.
        temperature: Temperature, used in error messages only.

    Returns:
        The correlation length. It is 0 if lambda_2 is 0 or the length is below (W - 1) / 30, and inf if the length
        exceeds the range of float64.

    Raises:
        InputError: If the eigenvalues of a large matrix are not resolved, or mpmath is needed and not installed.
    """
    if window == 1:
        return 0.0
    states = vocab ** (window - 1)
    matrix = transfer_matrix(_balance_weights(log_weights, vocab, states))
    largest, second = leading_moduli(matrix, 2, temperature)
    # If the weights of all cycles underflow, float64 does not resolve the eigenvalues.
    ratio = second / largest if largest > 0 else 1.0
    # The computed value of a zero eigenvalue with a Jordan block of size W - 1 is about the (W - 1)-th root of the
    # rounding error.
    if ratio < 1e-13 ** (1 / (window - 1)):
        return 0.0
    if ratio < 1 - RESOLVED:
        return -1 / math.log(ratio)
    weights = log_weights.view(vocab, states).numpy()
    # The relative gap of the eigenvalues is at least the weight of a domain wall, which changes at most W - 1 windows.
    unresolved = f"the correlation length is above {1 / RESOLVED:.0e} sites"
    mpmath = from_extra("mpmath", "precise")
    with mpmath.workdps(required_digits(weights, window - 1, temperature, unresolved)):
        first, second = precise_moduli(precise_transfer_matrix(weights))[:2]
        return math.inf if first == second else float(1 / mpmath.log(first / second))


def matrix_positions(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row and the column of every window in the transfer matrix.

    Args:
        weights: Array (V, ...) with V^W entries. Only its shape is used.

    Returns:
        Rows (V^W,), the first W - 1 tokens of each window as base-V numbers, and columns (V^W,), the last W - 1 tokens.
    """
    windows = np.arange(weights.size)
    return windows // weights.shape[0], windows % (weights.size // weights.shape[0])


def transfer_matrix(weights: NDArray[np.float64]) -> csr_array:
    """Return the sparse transfer matrix of a Potts chain, with one row and one column per context.

    A window is a run of W tokens, each one of V values. A context is the W - 1 tokens that two consecutive windows
    share.

    Args:
        weights: Weights (V, ...) of the V^W windows.

    Returns:
        Square matrix whose nonzero entries are the positive weights.
    """
    states = weights.size // weights.shape[0]
    matrix = csr_array((weights.ravel(), matrix_positions(weights)), (states, states))
    matrix.eliminate_zeros()
    return matrix


def leading_moduli(matrix: csr_array, count: int, temperature: float) -> NDArray[np.float64]:
    """Return the largest moduli of the eigenvalues of a matrix.

    Args:
        matrix: Square matrix.
        count: Number of eigenvalues.
        temperature: Temperature, used in error messages only.

    Returns:
        Moduli (count,) in descending order.

    Raises:
        InputError: If the sparse solver does not converge.
    """
    states = matrix.shape[0]
    if states <= DENSE_STATES:
        values = np.linalg.eigvals(matrix.toarray())
    else:
        # The start is random because the solver never leaves a symmetric subspace.
        start = numpy_generator(0, "spectrum").random(states)
        try:
            values = eigs(matrix, k=count, v0=start, ncv=64, maxiter=10_000, return_eigenvectors=False)
        except ArpackError as error:
            hint = f"use a higher temperature, because the eigenvalues of {states} states did not converge ({error})"
            raise InputError("temperature", temperature, hint) from None
    return np.asarray(np.sort(np.abs(values))[::-1][:count])


def required_digits(
    log_weights: NDArray[np.float64], windows: int, temperature: float, unresolved: str
) -> int:
    """Return how many decimal digits are needed to distinguish two eigenvalues with a tiny relative gap.

    The gap is at least the ratio of the smallest to the largest window weight, to the power `windows`.

    Args:
        log_weights: Log-weights (V, ...) of the V^W windows, -inf for forbidden windows.
        windows: Number of window weights that determine the gap.
        temperature: Temperature, used in error messages only.
        unresolved: Clause for the error message that names the unresolved value.

    Returns:
        Number of decimal digits, including 30 guard digits.

    Raises:
        InputError: If there are more than `PRECISE_STATES` states or `PRECISE_DIGITS` digits.
    """
    states = log_weights.size // log_weights.shape[0]
    finite = log_weights[log_weights > -math.inf]
    digits = 30 + math.ceil(windows * float(finite.max() - finite.min()) / math.log(10))
    if states > PRECISE_STATES or digits > PRECISE_DIGITS:
        hint = f"use a higher one: {unresolved}, which float64 does not resolve for {states} states"
        raise InputError("temperature", temperature, hint)
    return digits


def precise_transfer_matrix(
    log_weights: NDArray[np.float64], allowed: NDArray[np.bool_] | None = None
) -> "mpmath.matrix":
    """Return the transfer matrix in the current precision of mpmath.

    Args:
        log_weights: Log-weights (V, ...) of the V^W windows.
        allowed: Mask (V^W,) of the windows with a nonzero entry (default: all).

    Returns:
        Dense matrix of size V^(W-1).
    """
    mpmath = from_extra("mpmath", "precise")
    states = log_weights.size // log_weights.shape[0]
    source, target = (contexts.tolist() for contexts in matrix_positions(log_weights))
    exponents = log_weights.ravel().tolist()
    matrix = mpmath.zeros(states)
    for window in range(log_weights.size) if allowed is None else np.flatnonzero(allowed).tolist():
        matrix[source[window], target[window]] += mpmath.exp(exponents[window])
    return matrix


def precise_moduli(matrix: "mpmath.matrix") -> "list[mpmath.mpf]":
    """Return the moduli of all eigenvalues of a matrix in the current precision of mpmath.

    Args:
        matrix: Square matrix.

    Returns:
        Moduli in descending order.
    """
    if matrix.rows == 1:
        return [abs(matrix[0, 0])]
    eigenvalues = from_extra("mpmath", "precise").eig(matrix, left=False, right=False)
    return sorted((abs(value) for value in eigenvalues), reverse=True)


def _balance_weights(log_weights: Tensor, vocab: int, states: int) -> NDArray[np.float64]:
    """Rescale the transfer matrix, with the same eigenvalues, so that its row sums are about 1 and do not underflow."""
    leading = log_weights.view(vocab, states)
    right = torch.zeros(states, dtype=torch.float64)
    max_steps = min(_MAX_BALANCING_STEPS, _MAX_BALANCING_UPDATES // leading.numel())
    for step in range(max(_MIN_BALANCING_STEPS, max_steps)):
        change = (leading + right).view(states, vocab).logsumexp(1) - right
        change = change - change.amax()
        if step >= _MIN_BALANCING_STEPS and float(change.amin()) > -_BALANCE_TOLERANCE:
            break
        # Half steps converge. Full steps can oscillate if the lowest-energy sequence is periodic.
        right = right + change / 2
    weights = (leading + right).view(states, vocab) - right[:, None]
    return np.asarray((weights - weights.logsumexp(1).amax()).exp().view(vocab, states).numpy())
