"""Exact Markov chains on the number of up spins in a clique.

A clique is a set of m spins ±1 with coupling J for each pair and field h on each spin. The other spins of the
model are independent of it. By symmetry, the number of up (+1) spins in the clique is a Markov chain with
states 0 to m. All probabilities are stored as logarithms, so that values like 1e-300 keep their precision.
"""

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp
from scipy.stats import hypergeom

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.probabilities import SINGLE
from trialogue.validation import Count, Finite, Natural, validated

Array = NDArray[np.float64]
LogMatrix = Annotated[ArrayLike, Reals("states states", infinite="both")]
"""Logarithms of transition probabilities, one row per current state."""


@validated
def block_chain(sites: Count, clique: Count, coupling: Finite, field: Finite, block_size: Count) -> Array:
    """Return the log transition matrix of k-Gibbs, with the number of up spins in a clique as the state.

    A clique is a set of coupled spins of an Ising model. Each step chooses k of the N spins uniformly and resamples
    them jointly given all others (Definition 4.1.10).

    Args:
        sites: Number N of spins of the model.
        clique: Number of spins in the clique.
        coupling: Coupling J of each pair in the clique.
        field: Field h on each spin of the clique.
        block_size: Number k of spins resampled in each step.

    Returns:
        Log-probabilities (clique + 1, clique + 1). Row i belongs to i up spins before the step.
    """
    require_most("clique", clique, sites)
    require_most("block_size", block_size, sites)
    drawn = np.arange(max(0, block_size - (sites - clique)), min(clique, block_size) + 1)
    chances = hypergeom.logpmf(drawn, sites, clique, block_size)
    matrix = np.full((clique + 1, clique + 1), -np.inf)
    for size, chance in zip(drawn.tolist(), chances.tolist(), strict=True):
        # The resampled spins depend only on the number `kept` of up spins outside the block.
        ups = np.arange(size + 1)
        kept = np.arange(clique - size + 1)
        total = 2 * (kept[:, None] + ups) - clique
        weights = log_binomial(size, ups) + coupling * total**2 / 2 + field * total
        distribution = weights - logsumexp(weights, axis=1, keepdims=True)
        for up in range(clique + 1):
            inside = np.arange(max(0, size - (clique - up)), min(up, size) + 1)
            before = hypergeom.logpmf(inside, clique, up, size) + chance
            for taken, weight in zip(inside.tolist(), before.tolist(), strict=True):
                reached = slice(up - taken, up - taken + size + 1)
                matrix[up, reached] = np.logaddexp(matrix[up, reached], weight + distribution[up - taken])
    return matrix


@validated
def parallel_chain(clique: Count, coupling: Finite, field: Finite) -> Array:
    """Return the log transition matrix of independent parallel sampling, with the number of up spins as the state.

    The spins belong to a clique of an Ising model, a set of coupled spins. Each step resamples every spin given the
    previous values of all others (Definition 4.1.11, equation 4.4).

    Args:
        clique: Number of spins in the clique.
        coupling: Coupling J of each pair in the clique.
        field: Field h on each spin of the clique.

    Returns:
        Log-probabilities (clique + 1, clique + 1). Row i belongs to i up spins before the step.
    """
    matrix = np.full((clique + 1, clique + 1), -np.inf)
    for up in range(clique + 1):
        stay = _compute_log_binomial_distribution(up, 2 * (field + coupling * (2 * up - clique - 1)))
        rise = _compute_log_binomial_distribution(clique - up, 2 * (field + coupling * (2 * up - clique + 1)))
        for kept, weight in enumerate(stay.tolist()):
            reached = slice(kept, kept + clique - up + 1)
            matrix[up, reached] = np.logaddexp(matrix[up, reached], weight + rise)
    return matrix


@validated
def log_hitting_times(log_matrix: LogMatrix) -> Array:
    """Return the log of the expected number of steps until a chain first visits its last state.

    Args:
        log_matrix: Log transition matrix (states, states).

    Returns:
        Logarithms (states,), one per initial state. The entry of the last state is -inf.

    Raises:
        InputError: If the last state is not reachable.
    """
    work = _check_log_matrix(log_matrix).copy()
    size = len(work)
    times = np.zeros(size)
    times[-1] = -np.inf
    np.fill_diagonal(work, -np.inf)
    exits = np.zeros(size)
    for state in range(size - 1):
        later = np.arange(size) > state
        exits[state] = logsumexp(work[state, later])
        if exits[state] == -np.inf:
            hint = "the last state is not reachable from this state: use a chain that can reach it"
            raise InputError("log_matrix", state, hint)
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


@validated
def hitting_probability(log_matrix: LogMatrix, steps: Natural) -> Array:
    """Return the probability that a Markov chain visits its last state within a number of steps.

    Args:
        log_matrix: Log transition matrix (states, states). Row i belongs to the current state i.
        steps: Number of steps.

    Returns:
        Probabilities (states,), one for each initial state.
    """
    matrix = _check_log_matrix(log_matrix)
    return _compute_visit_probabilities(matrix, np.arange(len(matrix)) == len(matrix) - 1, steps)


@validated
def escape_probability(log_matrix: LogMatrix, up: Natural, steps: Natural) -> Array:
    """Return the probability that a Markov chain on numbers of up spins exceeds `up` within a number of steps.

    Args:
        log_matrix: Log transition matrix (states, states) on the number of up spins.
        up: Largest number of up spins that does not count as an escape.
        steps: Number of steps.

    Returns:
        Probabilities (up + 1,), one for each initial number of up spins from 0 to `up`.
    """
    matrix = _check_log_matrix(log_matrix)
    require_most("up", up, len(matrix) - 1)
    return _compute_visit_probabilities(matrix, np.arange(len(matrix)) > up, steps)[: up + 1]


def _check_log_matrix(log_matrix: ArrayLike) -> Array:
    matrix = np.asarray(log_matrix, dtype=np.float64)
    totals = logsumexp(matrix, axis=1)
    wrong = totals[~(abs(totals) <= SINGLE)]
    if len(wrong):
        hint = "give the logarithms of a transition matrix: the log of the sum of a row has this value instead of 0"
        raise InputError("log_matrix", float(wrong[0]), hint)
    return matrix


def _compute_visit_probabilities(log_matrix: Array, target: NDArray[np.bool_], steps: int) -> Array:
    matrix = np.exp(log_matrix)
    matrix[target] = np.eye(len(matrix))[target]
    power = np.linalg.matrix_power(matrix, steps)
    return np.minimum(power[:, target].sum(1), 1.0)


def log_binomial(size: int, ups: NDArray[np.integer] | int) -> Array:
    """Return the log of the binomial coefficient binom(size, ups), elementwise in `ups`."""
    coefficient: Array = gammaln(size + 1) - gammaln(ups + 1) - gammaln(size - ups + 1)
    return coefficient


def _compute_log_binomial_distribution(size: int, log_odds: float) -> Array:
    ups = np.arange(size + 1)
    log_up, log_down = -np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)
    return log_binomial(size, ups) + ups * log_up + (size - ups) * log_down


def require_most(field: str, value: int, most: int) -> None:
    """Raise `InputError` for the argument `field` if `value` is above `most`."""
    if value > most:
        raise InputError(field, value, f"use at most {most}")
