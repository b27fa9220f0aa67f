"""The two leading eigenvalues of a transfer matrix, and the correlation length they give."""

import math

import mpmath
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, eigs
from torch import Tensor

from trialogue.errors import InputError
from trialogue.randomness import numpy_generator

DENSE_STATES = 512
"""Transfer matrices of more states go to the sparse eigenvalue solver."""
RESOLVED = 1e-9
"""Two eigenvalues whose ratio is closer to one are not told apart well enough in float64."""
PRECISE_STATES, PRECISE_DIGITS = 16, 1000
"""Larger matrices, and eigenvalues that lie closer, would take minutes."""


def correlation_length(log_weights: Tensor, vocab: int, window: int, temperature: float) -> float:
    """1 / log(lambda_1 / |lambda_2|) of `log_weights` (V^W,); 0 where lambda_2 vanishes, inf beyond float64's range.

    Where float64 does not tell the two apart, small matrices are solved with as many digits as it takes; raises
    `InputError`, which names the `temperature`, for larger ones.
    """
    if window == 1:
        return 0.0
    states = vocab ** (window - 1)
    moduli = _moduli(log_weights, vocab, states, temperature)
    ratio = moduli[1] / moduli[0]
    # A vanishing eigenvalue of a chain of W - 1 generalised eigenvectors comes out at that root of the rounding error.
    if ratio < 1e-13 ** (1 / (window - 1)):
        return 0.0
    if ratio < 1 - RESOLVED:
        return -1 / math.log(ratio)
    # One wall costs no more than W - 1 windows, so that the eigenvalues differ by no less than its weight.
    digits = 30 + math.ceil((window - 1) * float(log_weights.max() - log_weights.min()) / math.log(10))
    if states > PRECISE_STATES or digits > PRECISE_DIGITS:
        raise InputError(
            "temperature",
            temperature,
            f"the correlation length is above {1 / RESOLVED:.0e} sites, which float64 does not resolve for "
            f"{states} states: use a higher one",
        )
    return _precisely(log_weights, vocab, states, digits)


def _moduli(log_weights: Tensor, vocab: int, states: int, temperature: float) -> NDArray[np.float64]:
    """Moduli of the eigenvalues up to a factor, the two largest first."""
    weights = _balanced(log_weights, vocab, states)
    source, target = np.repeat(np.arange(states), vocab), np.arange(states * vocab) % states
    matrix = csr_array((weights, (source, target)), shape=(states, states))
    if states <= DENSE_STATES:
        values = np.linalg.eigvals(matrix.toarray())
    else:
        # From a start that a symmetry of the tokens leaves as it is, what changes its sign would never be found.
        start = numpy_generator(0, "spectrum").random(states)
        try:
            values = eigs(matrix, k=2, v0=start, ncv=64, maxiter=10_000, return_eigenvectors=False)
        except ArpackError as error:
            raise InputError(
                "temperature",
                temperature,
                f"no eigenvalues of {states} states found ({error}): use a higher one",
            ) from None
    return np.asarray(np.sort(np.abs(values))[::-1])


def _precisely(log_weights: Tensor, vocab: int, states: int, digits: int) -> float:
    with mpmath.workdps(digits):
        matrix = mpmath.zeros(states)
        for window, weight in enumerate(log_weights.tolist()):
            matrix[window // vocab, window % states] = mpmath.exp(weight)
        values = mpmath.eig(matrix, left=False, right=False)
        first, second = sorted((abs(value) for value in values), reverse=True)[:2]
        return math.inf if first == second else float(1 / mpmath.log(first / second))


def _balanced(log_weights: Tensor, vocab: int, states: int) -> NDArray[np.float64]:
    """Weights of a similar matrix whose rows sum to about one, so that none of them underflows as a whole."""
    leading = log_weights.view(vocab, states)
    right = torch.zeros(states, dtype=torch.float64)
    for _ in range(64):
        right = (leading + right).view(states, vocab).logsumexp(1)
        right = right - right.amax()
    weights = (leading + right).view(states, vocab) - right[:, None]
    return np.asarray((weights - weights.logsumexp(1).amax()).exp().flatten().numpy())
