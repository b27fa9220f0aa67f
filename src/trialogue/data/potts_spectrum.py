"""The two leading eigenvalues of a transfer matrix, and the correlation length they give."""

import math

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, eigs
from torch import Tensor

from trialogue.errors import InputError

DENSE_STATES = 512
"""Transfer matrices of more states go to the sparse eigenvalue solver."""
RESOLVED = 1e-11
"""Two eigenvalues whose ratio is closer to one are not told apart."""


def correlation_length(log_weights: Tensor, vocab: int, window: int) -> float:
    """1 / log(lambda_1 / |lambda_2|) of `log_weights` (V^W,); 0 where lambda_2 vanishes.

    Raises `InputError` where they are too close to be told apart.
    """
    if window == 1:
        return 0.0
    states = vocab ** (window - 1)
    weights = _balanced(log_weights, vocab, states)
    source = np.repeat(np.arange(states), vocab)
    target = np.arange(states * vocab) % states
    matrix = csr_array((weights, (source, target)), shape=(states, states))
    if states <= DENSE_STATES:
        moduli = np.sort(np.abs(np.linalg.eigvals(matrix.toarray())))[::-1]
    else:
        start = np.ones(states)
        try:
            found = eigs(matrix, k=2, v0=start, ncv=min(states, 64), maxiter=2000, return_eigenvectors=False)
        except ArpackError as error:
            raise InputError(
                "temperature",
                None,
                f"the eigenvalues of {states} states were not found ({error}): use a higher one",
            ) from None
        moduli = np.sort(np.abs(found))[::-1]
    ratio = moduli[1] / moduli[0]
    # Defective zeros (a product of matrices that forgets at once) come out at the root of the rounding error.
    if ratio < 1e-13 ** (1 / max(1, window - 1)):
        return 0.0
    if ratio > 1 - RESOLVED:
        raise InputError(
            "temperature",
            None,
            f"the correlation length is above {1 / RESOLVED:.0e} sites, beyond what float64 resolves: use a higher one",
        )
    return -1 / math.log(ratio)


def _balanced(log_weights: Tensor, vocab: int, states: int) -> np.ndarray:
    """Weights of a similar matrix whose rows sum to about one, so that none of them underflows as a whole."""
    leading = log_weights.view(vocab, states)
    right = torch.zeros(states, dtype=torch.float64)
    for _ in range(64):
        right = (leading + right).view(states, vocab).logsumexp(1)
        right = right - right.amax()
    weights = (leading + right).view(states, vocab) - right[:, None]
    return np.asarray((weights - weights.logsumexp(1).amax()).exp().flatten().numpy())
