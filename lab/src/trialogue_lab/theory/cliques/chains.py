"""Chains on a clique of equal spins, exactly and at any size: one number, how many spins of the clique are up.

A clique of m spins with coupling J between every (unordered) pair and the same field h on each of its spins, in a
model of `sites` sites; the other sites are independent of it and play no part. The states of these matrices are
the numbers of up spins, 0 to m: R_{-1} is 0 and R_1 is m. Matrices hold log-probabilities, and hitting times come by
elimination without subtraction, so that what is 1e-300 or 1e300 keeps its digits.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp
from scipy.stats import hypergeom

from trialogue.arrays import real_tensor
from trialogue.errors import InputError, finite_number, whole_number
from trialogue.probabilities import SINGLE

Array = NDArray[np.float64]


def block_chain(sites: int, clique: int, coupling: float, field: float, block_size: int) -> Array:
    """Log transition matrix (clique + 1, clique + 1) of k-Gibbs on the number of up spins, k = `block_size`.

    The block holds a hypergeometric number of the clique's spins, of which a hypergeometric number is up; they are
    redrawn jointly given the rest of the clique (Definition 4.1.10). Time grows as clique ** 4 at worst.
    """
    coupling, field = finite_number("coupling", coupling), finite_number("field", field)
    sites, clique = _sizes(sites, clique)
    block_size = whole_number("block_size", block_size, 1)
    if block_size > sites:
        raise InputError("block_size", block_size, f"there are {sites} sites: use at most {sites}")
    drawn = np.arange(max(0, block_size - (sites - clique)), min(clique, block_size) + 1)
    chances = hypergeom.logpmf(drawn, sites, clique, block_size)
    matrix = np.full((clique + 1, clique + 1), -np.inf)
    for size, chance in zip(drawn.tolist(), chances.tolist(), strict=True):
        # Whatever was up in the block, the number `kept` of up spins outside it says all.
        ups = np.arange(size + 1)
        kept = np.arange(clique - size + 1)
        total = 2 * (kept[:, None] + ups) - clique
        weights = log_binomial(size, ups) + coupling * total**2 / 2 + field * total
        law = weights - logsumexp(weights, axis=1, keepdims=True)
        for up in range(clique + 1):
            inside = np.arange(max(0, size - (clique - up)), min(up, size) + 1)
            before = hypergeom.logpmf(inside, clique, up, size) + chance
            for taken, weight in zip(inside.tolist(), before.tolist(), strict=True):
                reached = slice(up - taken, up - taken + size + 1)
                matrix[up, reached] = np.logaddexp(matrix[up, reached], weight + law[up - taken])
    return matrix


def parallel_chain(clique: int, coupling: float, field: float) -> Array:
    """Log transition matrix (clique + 1, clique + 1) of independent parallel updates (Definition 4.1.11, eq. (4.4)).

    Each spin is redrawn given the old values of all others: an up spin sees one up spin fewer than a down one.
    """
    coupling, field = finite_number("coupling", coupling), finite_number("field", field)
    clique = whole_number("clique", clique, 1)
    matrix = np.full((clique + 1, clique + 1), -np.inf)
    for up in range(clique + 1):
        stay = _log_binomial_law(up, 2 * (field + coupling * (2 * up - clique - 1)))
        rise = _log_binomial_law(clique - up, 2 * (field + coupling * (2 * up - clique + 1)))
        for kept, weight in enumerate(stay.tolist()):
            reached = slice(kept, kept + clique - up + 1)
            matrix[up, reached] = np.logaddexp(matrix[up, reached], weight + rise)
    return matrix


def log_hitting_times(log_matrix: Array) -> Array:
    """Log of the expected number of steps (states,) until the last state is first visited; -inf at that state.

    `log_matrix` (states, states) is a log transition matrix. States are eliminated one after the other, adding
    positive terms only. Raises `InputError` where the last state is out of reach.
    """
    log_matrix = _log_matrix(log_matrix)
    size = len(log_matrix)
    times = np.zeros(size)
    times[-1] = -np.inf
    work = log_matrix.copy()
    np.fill_diagonal(work, -np.inf)
    exits = np.zeros(size)
    for state in range(size - 1):
        later = np.arange(size) > state
        exits[state] = logsumexp(work[state, later])
        if exits[state] == -np.inf:
            raise InputError(
                "log_matrix", state, "this state never leads further: the last one is out of reach"
            )
        back = work[later, state] - exits[state]
        times[later] = np.logaddexp(times[later], back + times[state])
        work[np.ix_(later, later)] = np.logaddexp(
            work[np.ix_(later, later)], back[:, None] + work[state, later]
        )
        times[-1] = -np.inf
        np.fill_diagonal(work, -np.inf)
    solved = times.copy()
    for state in range(size - 2, -1, -1):
        later = np.arange(size) > state
        through = logsumexp(work[state, later] + solved[later])
        solved[state] = np.logaddexp(times[state], through) - exits[state]
    return solved


def hitting_probability(log_matrix: Array, steps: int) -> Array:
    """Probability (states,) that the last state is visited within `steps` steps, to full relative precision."""
    log_matrix = _log_matrix(log_matrix)
    return _visits(log_matrix, np.arange(len(log_matrix)) == len(log_matrix) - 1, steps)


def escape_probability(log_matrix: Array, up: int, steps: int) -> Array:
    """Probability (up + 1,), by start, that more than `up` spins are up at some time within `steps` steps."""
    log_matrix = _log_matrix(log_matrix)
    up = whole_number("up", up, 0, len(log_matrix) - 1)
    return _visits(log_matrix, np.arange(len(log_matrix)) > up, steps)[: up + 1]


def _log_matrix(log_matrix: Array) -> Array:
    hint = "give the logarithms of a square transition matrix"
    matrix: Array = real_tensor("log_matrix", log_matrix, hint).numpy()
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix) or np.isnan(matrix).any():
        raise InputError("log_matrix", matrix.shape, hint)
    totals = logsumexp(matrix, axis=1)
    wrong = totals[~(abs(totals) <= SINGLE)]
    if len(wrong):
        raise InputError("log_matrix", float(wrong[0]), f"{hint}: this is the logarithm of a row's sum")
    return matrix


def _visits(log_matrix: Array, target: NDArray[np.bool_], steps: int) -> Array:
    steps = whole_number("steps", steps, 0)
    matrix = np.exp(log_matrix)
    matrix[target] = np.eye(len(matrix))[target]
    power = np.linalg.matrix_power(matrix, steps)
    return np.minimum(power[:, target].sum(1), 1.0)


def log_binomial(size: int, ups: NDArray[np.integer] | int) -> Array:
    """log of `size` choose `ups`, elementwise."""
    coefficient: Array = gammaln(size + 1) - gammaln(ups + 1) - gammaln(size - ups + 1)
    return coefficient


def _log_binomial_law(size: int, log_odds: float) -> Array:
    ups = np.arange(size + 1)
    log_up, log_down = -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)
    return log_binomial(size, ups) + ups * log_up + (size - ups) * log_down


def _sizes(sites: int, clique: int) -> tuple[int, int]:
    sites = whole_number("sites", sites, 1)
    clique = whole_number("clique", clique, 1)
    if clique > sites:
        raise InputError("clique", clique, f"there are {sites} sites: use at most {sites}")
    return sites, clique
