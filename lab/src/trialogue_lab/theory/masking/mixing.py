"""Speed at which a finite Markov chain approaches its stationary distribution.

Row x of a transition matrix P (states, states) is the distribution of the next state after state x.
`trialogue.samplers.exact.transition_matrix` computes the matrix of a sampler. Equation numbers refer to chapter 4 of
the thesis.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp
from torch import Tensor

from trialogue.arrays import Reals, real_tensor
from trialogue.errors import InputError
from trialogue.probabilities import validate_probabilities
from trialogue.samplers.exact import ergodicity
from trialogue.validation import Probability, validated
from trialogue_lab.theory.masking.block_laws import BlockDistribution, check_state_distribution

Transitions = Annotated[Tensor, Reals("states states", least=0)]
"""Transition matrix. Row x is the distribution of the next state after state x."""
_ROW_SUM = 1e-9
_SMALLEST_GAP = 1e-10  # Eigenvalues of a matrix of norm two have errors of a few 1e-16.
_LONGEST = 2**33
_TIE = 1e-12


@validated
def stationary_probabilities(transitions: Transitions) -> Tensor:
    """Return the stationary distribution of a Markov chain.

    Small probabilities have full relative precision (elimination without subtraction, Grassmann, Taksar and
    Heyman 1985). States that the chain leaves forever have probability zero.

    Args:
        transitions: Transition matrix (states, states).

    Returns:
        Probabilities (states,) float64.

    Raises:
        InputError: If the stationary distribution is not unique.
    """
    matrix = _check_stochastic(transitions)
    return torch.from_numpy(np.exp(_compute_log_stationary(matrix, _find_closed_class(matrix))))


@validated
def dirichlet_form(
    transitions: Transitions, f: Tensor, g: Tensor, distribution: Tensor | None = None
) -> float:
    """Return the Dirichlet form of a Markov chain, which measures how much functions change in one step.

    It is E_P(f, g) = <f, (I - P) g>_mu with <f, g>_mu = sum_x mu(x) f(x) g(x) (Definition 4.1.4). For a reversible
    chain with stationary distribution mu, it equals 1/2 sum_{x,y} mu(x) P(x, y) (f(x) - f(y)) (g(x) - g(y)).

    Args:
        transitions: Transition matrix P (states, states).
        f: Function values (states,).
        g: Function values (states,).
        distribution: Distribution mu (states,) (default: the stationary distribution).
    """
    matrix = torch.from_numpy(_check_stochastic(transitions))
    f, g = (_check_function(name, function, (len(matrix),)) for name, function in (("f", f), ("g", g)))
    distribution = (
        stationary_probabilities(matrix)
        if distribution is None
        else check_state_distribution(distribution, len(matrix), "distribution")
    )
    return float((distribution * f) @ (g - matrix @ g))


@validated
def poincare_constant(transitions: Transitions) -> float:
    """Return the Poincaré constant C of a Markov chain, which is small if the chain mixes fast (Definition 4.1.5).

    It is the inverse spectral gap, C = 1 / (1 - lambda_2), where lambda_2 is the second largest eigenvalue of
    the transition matrix P. If the chain is not reversible, P is replaced by (P + P*) / 2 with the time
    reversal P*. The relative error is about 1e-16 C.

    Args:
        transitions: Transition matrix P (states, states).

    Raises:
        InputError: If some states cannot reach others, only one state is recurrent, or C exceeds 1e10.
    """
    matrix = _check_stochastic(transitions)
    members = _find_closed_class(matrix)
    if len(members) == 1:
        raise InputError(
            "transitions",
            1,
            "the chain has only one recurrent state, so all variances are zero: use a larger chain",
        )
    log_distribution = _compute_log_stationary(matrix, members)[members]
    off = matrix[np.ix_(members, members)].copy()
    np.fill_diagonal(off, 0.0)
    # Logarithms, because probabilities can underflow although their ratios matter.
    with np.errstate(divide="ignore"):
        scaled = np.exp(np.log(off) + (log_distribution[:, None] - log_distribution) / 2)
    laplacian = -(scaled + scaled.T) / 2
    # The sum of off-diagonal entries keeps the relative precision that 1 - P(x, x) loses.
    np.fill_diagonal(laplacian, off.sum(1))
    gap = float(np.linalg.eigvalsh(laplacian)[1])
    if gap < _SMALLEST_GAP:
        hint = "the spectral gap is below double precision: the chain practically never mixes"
        raise InputError("transitions", gap, hint)
    return 1 / gap


@validated
def mixing_time(transitions: Transitions, eps: Probability = 0.25) -> float:
    """Return the number of steps until a Markov chain is close to its stationary distribution.

    It is the smallest number of steps after which the total variation distance is at most `eps`, for every
    initial state.

    Args:
        transitions: Transition matrix (states, states).
        eps: Total variation distance to reach.

    Returns:
        Number of steps, as a float.

    Raises:
        InputError: If some states cannot reach others, the chain is periodic, or it mixes too slowly for
            double precision.
    """
    matrix = _check_stochastic(transitions)
    members = _find_closed_class(matrix)
    period = ergodicity(torch.from_numpy(matrix)).period
    if period > 1:
        raise InputError("transitions", period, "the chain is periodic with this period and never mixes")
    distribution = np.exp(_compute_log_stationary(matrix, members))
    reached_at = eps * (1 + _TIE)
    if 1 - distribution.min() <= reached_at:
        return 0.0
    # Powers of P - 1 mu^T are P^t - 1 mu^T without the eigenvalue one, whose rounding errors would add up.
    centred = matrix - distribution

    def is_mixed(steps: int) -> bool:
        power = np.linalg.matrix_power(centred, steps)
        return bool(np.abs(power).sum(1).max() / 2 <= reached_at)

    most = 1
    while not is_mixed(most):
        if most > _LONGEST:
            hint = "the chain has not mixed after this many steps, the limit of double precision"
            raise InputError("transitions", most, hint)
        most *= 2
    return float(1 + bisect_left(range(1, most), True, key=is_mixed))


@validated
def chi_square(first: Tensor, second: Annotated[Tensor, Reals("states")]) -> float:
    """Return the chi-square divergence sum_x (p(x) - mu(x))^2 / mu(x) of two distributions.

    It is infinite if p is positive where mu is zero.

    Args:
        first: Distribution p (states,).
        second: Distribution mu (states,).
    """
    second = check_state_distribution(second, len(second), "second")
    first = check_state_distribution(first, len(second), "first")
    if bool(((first > 0) & (second == 0)).any()):
        return math.inf
    support = second > 0
    return float(((first - second)[support] ** 2 / second[support]).sum())


class ChiSquareDecay(NamedTuple):
    """Chi-square divergence of a Markov chain from its stationary distribution over time.

    Attributes:
        times: Times (times,) float64.
        values: Divergence at each time, shape (times,) float64.
        bounds: Upper bound from the Poincaré constant at each time, shape (times,) float64.
    """

    times: Tensor
    values: Tensor
    bounds: Tensor


@validated
def chi_square_decay(
    transitions: Transitions,
    start: Tensor,
    times: Annotated[Sequence[float] | Tensor, Reals("times", least=0)],
) -> ChiSquareDecay:
    """Compute the distance of a Markov chain from its stationary distribution over time, with an upper bound.

    The distance is the divergence chi^2(p_t, mu) (see `chi_square`), where p_t is the distribution at time t
    and mu the stationary distribution. The bound is e^{-2t/C} chi^2(p_0, mu) with the Poincaré constant C.
    Transitions occur at random times, one per unit of time on average.

    Args:
        transitions: Transition matrix (states, states).
        start: Initial distribution p_0 (states,).
        times: Non-negative times.

    Raises:
        InputError: If `poincare_constant` rejects the chain.
    """
    matrix = torch.from_numpy(_check_stochastic(transitions))
    distribution, constant = stationary_probabilities(matrix), poincare_constant(matrix)
    start = check_state_distribution(start, len(distribution), "start")
    initial = chi_square(start, distribution)
    times = torch.as_tensor(times, dtype=torch.float64)
    powers = [
        torch.linalg.matrix_exp(time * (matrix - torch.eye(len(distribution)))) for time in times.tolist()
    ]
    values = torch.tensor([chi_square(start @ power, distribution) for power in powers], dtype=torch.float64)
    return ChiSquareDecay(times, values, torch.exp(-2 * times / constant) * initial)


def block_dirichlet_form(
    probabilities: Tensor, distribution: BlockDistribution, f: Tensor, g: Tensor
) -> float:
    """Return the Dirichlet form of a Markov chain that resamples masked tokens, as a mean covariance.

        E(f, g) = E_{(X_{-K}, K)} Cov_{X_K | (X_{-K}, K)}(f, g)

    The chain (see `joint_block_dynamics`) resamples the tokens X_K of a sequence X at the masked positions K. This is
    Proposition 4.1.1.

    Args:
        probabilities: Probabilities (states,) of the sequences X.
        distribution: Distribution of K.
        f: Function values (states, blocks).
        g: Function values (states, blocks).
    """
    shape = (distribution.states, len(distribution.blocks))
    f, g = (_check_function(name, function, shape) for name, function in (("f", f), ("g", g)))
    probabilities = check_state_distribution(probabilities, distribution.states)
    covariance = 0.0
    for block, (states, weights, conditionals) in enumerate(distribution.fibers(probabilities)):
        own, other = f[:, block][states], g[:, block][states]
        own = own - (conditionals * own).sum(1, keepdim=True)
        other = other - (conditionals * other).sum(1, keepdim=True)
        covariance += float((weights * own * other).sum())
    return covariance


def _check_stochastic(transitions: Tensor) -> NDArray[np.float64]:
    """Return the matrix in float64. Raises `InputError` unless its rows sum to one."""
    hint = "use non-negative probabilities that sum to one in every row"
    shape = tuple(transitions.shape)
    matrix: NDArray[np.float64] = validate_probabilities(
        "transitions", transitions, shape, tolerance=_ROW_SUM, hint=hint
    ).numpy()
    return matrix


def _check_function(field: str, function: Tensor, shape: tuple[int, ...]) -> Tensor:
    values = real_tensor(field, function, f"use the shape {shape}")
    if values.shape != shape or not bool(values.isfinite().all()):
        raise InputError(field, tuple(values.shape), f"give finite numbers of the shape {shape}")
    return values


def _find_closed_class(matrix: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the states (members,) of the only closed class, which the chain never leaves."""
    count, label = connected_components(matrix > 0, connection="strong")
    leaves = [bool((matrix[label == one][:, label != one] > 0).any()) for one in range(count)]
    closed = [one for one in range(count) if not leaves[one]]
    if len(closed) > 1:
        hint = "the chain is reducible: its limit depends on which of this many closed classes it enters"
        raise InputError("transitions", len(closed), hint)
    return np.flatnonzero(label == closed[0])


def _compute_log_stationary(matrix: NDArray[np.float64], members: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return log-probabilities (states,) of the stationary distribution, -inf outside `members`."""
    work = matrix[np.ix_(members, members)].copy()
    log_in = np.full(work.shape, -np.inf)
    with np.errstate(divide="ignore"):
        for last in range(len(members) - 1, 0, -1):
            leaves = work[last, :last].sum()
            log_in[:last, last] = np.log(work[:last, last]) - np.log(leaves)
            work[:last, :last] += np.outer(work[:last, last], work[last, :last] / leaves)
    log_mass = np.zeros(len(members))
    for state in range(1, len(members)):
        log_mass[state] = logsumexp(log_mass[:state] + log_in[:state, state])
    log_distribution = np.full(len(matrix), -np.inf)
    log_distribution[members] = log_mass - logsumexp(log_mass)
    return log_distribution
