"""Transfer matrices of chains of windows, their leading eigenvalues, and the correlation length the first two give."""

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
"""Transfer matrices of more states go to the sparse eigenvalue solver."""
RESOLVED = 1e-9
"""Two eigenvalues whose ratio is closer to one are not told apart well enough in float64."""
_LEAST_STEPS, _MOST_STEPS = 64, 1024
_MOST_UPDATES = 2**28
"""Of large matrices no more than the least number of steps is taken to balance them."""
_UNEVEN = 1.0
"""Logarithms of the sums of rows that differ by no more are balanced."""
PRECISE_STATES, PRECISE_DIGITS = 16, 1000
"""Larger matrices, and eigenvalues that lie closer, would take minutes."""


def correlation_length(log_weights: Tensor, vocab: int, window: int, temperature: float) -> float:
    """1 / log(lambda_1 / |lambda_2|) of `log_weights` (V^W,); 0 where lambda_2 vanishes, inf beyond float64's range.

    0, too, where it is below (W - 1) / 30, which float64 does not tell from a lambda_2 that vanishes.
    Where float64 does not tell the two apart, small matrices are solved with as many digits as it takes; raises
    `InputError`, which names the `temperature`, for larger ones, and if mpmath is not installed.
    """
    if window == 1:
        return 0.0
    states = vocab ** (window - 1)
    matrix = transfer_matrix(_balanced(log_weights, vocab, states))
    largest, second = leading_moduli(matrix, 2, temperature)
    # Where all that leads round underflows, float64 tells nothing apart.
    ratio = second / largest if largest > 0 else 1.0
    # A vanishing eigenvalue of a chain of W - 1 generalised eigenvectors comes out at that root of the rounding error.
    if ratio < 1e-13 ** (1 / (window - 1)):
        return 0.0
    if ratio < 1 - RESOLVED:
        return -1 / math.log(ratio)
    weights = log_weights.view(vocab, states).numpy()
    # One wall costs no more than W - 1 windows, so that the eigenvalues differ by no less than its weight.
    unresolved = f"the correlation length is above {1 / RESOLVED:.0e} sites"
    mpmath = from_extra("mpmath", "precise")
    with mpmath.workdps(digits_resolved(weights, window - 1, temperature, unresolved)):
        first, second = precise_moduli(precise_transfer_matrix(weights))[:2]
        return math.inf if first == second else float(1 / mpmath.log(first / second))


def steps(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The contexts (V^W,), as numbers, before and after the last token of every window of `weights` (V, ...)."""
    windows = np.arange(weights.size)
    return windows // weights.shape[0], windows % (weights.size // weights.shape[0])


def transfer_matrix(weights: NDArray[np.float64]) -> csr_array:
    """The matrix of steps with these weights (V, ...) of V^W windows between the V^(W-1) contexts."""
    states = weights.size // weights.shape[0]
    matrix = csr_array((weights.ravel(), steps(weights)), (states, states))
    matrix.eliminate_zeros()
    return matrix


def leading_moduli(matrix: csr_array, count: int, temperature: float) -> NDArray[np.float64]:
    """Moduli (count,) of the `count` largest eigenvalues, descending; `temperature` is what an `InputError` names."""
    states = matrix.shape[0]
    if states <= DENSE_STATES:
        values = np.linalg.eigvals(matrix.toarray())
    else:
        # From a start that a symmetry of the tokens leaves as it is, what changes its sign would never be found.
        start = numpy_generator(0, "spectrum").random(states)
        try:
            values = eigs(matrix, k=count, v0=start, ncv=64, maxiter=10_000, return_eigenvectors=False)
        except ArpackError as error:
            hint = f"no eigenvalues of {states} states found ({error}): use a higher one"
            raise InputError("temperature", temperature, hint) from None
    return np.asarray(np.sort(np.abs(values))[::-1][:count])


def digits_resolved(
    log_weights: NDArray[np.float64], windows: int, temperature: float, unresolved: str
) -> int:
    """Decimal digits that tell eigenvalues apart whose ratio differs from one by the weight of so many windows.

    `log_weights` (V, ...) of V^W windows; -inf are forbidden. Raises `InputError`, which names the `temperature` and
    says what is `unresolved`, where there are more than `PRECISE_STATES` states or `PRECISE_DIGITS` digits.
    """
    states = log_weights.size // log_weights.shape[0]
    finite = log_weights[log_weights > -math.inf]
    digits = 30 + math.ceil(windows * float(finite.max() - finite.min()) / math.log(10))
    if states > PRECISE_STATES or digits > PRECISE_DIGITS:
        hint = f"{unresolved}, which float64 does not resolve for {states} states: use a higher one"
        raise InputError("temperature", temperature, hint)
    return digits


def precise_transfer_matrix(
    log_weights: NDArray[np.float64], kept: NDArray[np.bool_] | None = None
) -> "mpmath.matrix":
    """`transfer_matrix` of the windows `kept` (by default all), in the digits that mpmath works with."""
    mpmath = from_extra("mpmath", "precise")
    states = log_weights.size // log_weights.shape[0]
    source, target = (contexts.tolist() for contexts in steps(log_weights))
    exponents = log_weights.ravel().tolist()
    matrix = mpmath.zeros(states)
    for window in range(log_weights.size) if kept is None else np.flatnonzero(kept).tolist():
        matrix[source[window], target[window]] += mpmath.exp(exponents[window])
    return matrix


def precise_moduli(matrix: "mpmath.matrix") -> "list[mpmath.mpf]":
    """Moduli of all eigenvalues, descending, in the digits that mpmath works with."""
    if matrix.rows == 1:
        return [abs(matrix[0, 0])]
    eigenvalues = from_extra("mpmath", "precise").eig(matrix, left=False, right=False)
    return sorted((abs(value) for value in eigenvalues), reverse=True)


def _balanced(log_weights: Tensor, vocab: int, states: int) -> NDArray[np.float64]:
    """Weights (V, V^(W-1)) of a similar matrix whose rows sum to about one, so that none underflows as a whole."""
    leading = log_weights.view(vocab, states)
    right = torch.zeros(states, dtype=torch.float64)
    for step in range(max(_LEAST_STEPS, min(_MOST_STEPS, _MOST_UPDATES // leading.numel()))):
        change = (leading + right).view(states, vocab).logsumexp(1) - right
        change = change - change.amax()
        if step >= _LEAST_STEPS and float(change.amin()) > -_UNEVEN:
            break
        # By halves, since whole steps go round for ever where the tokens that cost least come round in turn.
        right = right + change / 2
    weights = (leading + right).view(states, vocab) - right[:, None]
    return np.asarray((weights - weights.logsumexp(1).amax()).exp().view(vocab, states).numpy())
