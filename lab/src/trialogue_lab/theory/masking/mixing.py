"""Markov chains on all states as matrices: stationary law, Dirichlet form, Poincaré constant, mixing, chi^2 decay.

A transition matrix P (states, states) float64 has rows that sum to one; row x is the law of the next state. Where a
function takes a chain and a model instead, the matrix is that of the chain's own step
(`trialogue.samplers.exact.transition_matrix`). Equations are those of chapter 4 of the thesis.
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
from trialogue.probabilities import checked_probabilities
from trialogue.samplers.exact import ergodicity
from trialogue.validation import Probability, validated
from trialogue_lab.theory.masking.block_laws import BlockLaw, law_of_states

Transitions = Annotated[Tensor, Reals("states states", least=0)]
"""Transition matrix, of which row x holds the distribution of the state after x."""
_ROW_SUM = 1e-9
_SMALLEST_GAP = 1e-10  # eigenvalues of a matrix of norm two are good to a few 1e-16
_LONGEST = 2**33
_TIE = 1e-12


@validated
def stationary_law(transitions: Transitions) -> Tensor:
    """The stationary law (states,) of a chain; small probabilities are as precise as their logarithms.

    By elimination without subtraction (Grassmann, Taksar and Heyman 1985), in logarithms. States that the chain leaves
    for good have probability zero. Raises `InputError` where several closed classes make it not unique.
    """
    matrix = _stochastic(transitions)
    return torch.from_numpy(np.exp(_log_stationary(matrix, _closed_class(matrix))))


@validated
def dirichlet_form(transitions: Transitions, f: Tensor, g: Tensor, law: Tensor | None = None) -> float:
    """E_P(f, g) = <f, (I - P) g>_mu of Definition 4.1.4, for f and g (states,); mu is stationary unless given.

    For a reversible chain it is 1/2 sum_{x,y} mu(x) P(x, y) (f(x) - f(y)) (g(x) - g(y)).
    """
    matrix = torch.from_numpy(_stochastic(transitions))
    f, g = (_function(name, function, (len(matrix),)) for name, function in (("f", f), ("g", g)))
    law = stationary_law(matrix) if law is None else law_of_states(law, len(matrix), "law")
    return float((law * f) @ (g - matrix @ g))


@validated
def poincare_constant(transitions: Transitions) -> float:
    """C = sup Var_mu(f) / E_P(f, f) (Definition 4.1.5): 1 / (1 - lambda_2(P)) for a reversible chain.

    `transitions` is a transition matrix, or a chain with its `model`. mu is the chain's stationary law; of a chain
    that is not reversible only the reversible part (P + P*) / 2 enters, as in the Dirichlet form. The relative error
    is about 1e-16 C. Raises `InputError` where the chain is reducible, and where C is above 1e10.
    """
    matrix = _stochastic(transitions)
    members = _closed_class(matrix)
    if len(members) == 1:
        raise InputError("transitions", 1, "one recurrent state leaves no variance: use a larger chain")
    log_law = _log_stationary(matrix, members)[members]
    off = matrix[np.ix_(members, members)].copy()
    np.fill_diagonal(off, 0.0)
    # In logarithms: the probabilities themselves may be too small for a float where their ratios count.
    with np.errstate(divide="ignore"):
        scaled = np.exp(np.log(off) + (log_law[:, None] - log_law) / 2)
    laplacian = -(scaled + scaled.T) / 2
    # The sum of what leaves keeps its relative precision where 1 - P(x, x) would not.
    np.fill_diagonal(laplacian, off.sum(1))
    gap = float(np.linalg.eigvalsh(laplacian)[1])
    if gap < _SMALLEST_GAP:
        hint = "the spectral gap is below double precision: the chain practically never mixes"
        raise InputError("transitions", gap, hint)
    return 1 / gap


@validated
def mixing_time(transitions: Transitions, eps: Probability = 0.25) -> float:
    """Smallest t with max_x TV(P^t(x, .), mu) <= `eps`: a whole number of steps, as a float.

    `transitions` is a transition matrix, or a chain with its `model`. A distance within 1e-12 `eps` of `eps` counts
    as equal to it; of a slow chain rounding may move t by a share of 1e-16 t. Raises `InputError` where the chain is
    not ergodic (reducible or periodic), and where it mixes too slowly for double precision.
    """
    matrix = _stochastic(transitions)
    members = _closed_class(matrix)
    period = ergodicity(torch.from_numpy(matrix)).period
    if period > 1:
        raise InputError("transitions", period, "the chain is periodic with this period and never mixes")
    law = np.exp(_log_stationary(matrix, members))
    reached_at = eps * (1 + _TIE)
    if 1 - law.min() <= reached_at:
        return 0.0
    # Powers of P - 1 mu^T are P^t - 1 mu^T without the eigenvalue one, whose rounding errors would add up.
    centred = matrix - law

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
    """chi^2(p, mu) = sum (p - mu)^2 / mu of two laws (states,); infinite where p is not absolutely continuous."""
    second = law_of_states(second, len(second), "second")
    first = law_of_states(first, len(second), "first")
    if bool(((first > 0) & (second == 0)).any()):
        return math.inf
    support = second > 0
    return float(((first - second)[support] ** 2 / second[support]).sum())


class Decay(NamedTuple):
    """chi^2(p_t, mu) at each time and the bound from the Poincaré constant, all (times,) float64."""

    times: Tensor
    values: Tensor
    bounds: Tensor


@validated
def chi_square_decay(
    transitions: Transitions,
    start: Tensor,
    times: Annotated[Sequence[float] | Tensor, Reals("times", least=0)],
) -> Decay:
    """How chi^2(p_t, mu) falls from the law `start` (states,), beside the bound of Definition 4.1.5.

    In continuous time (jumps at rate one) the bound is e^{-2t/C} chi^2(p_0, mu). With `discrete` steps it is
    (1 - 1/C)^{2t} chi^2(p_0, mu), which needs a reversible P without negative eigenvalues, as block dynamics are:
    raises `InputError` otherwise, for times that are negative, not finite or no whole steps, and as
    `poincare_constant`.
    """
    matrix = torch.from_numpy(_stochastic(transitions))
    law, constant = stationary_law(matrix), poincare_constant(matrix)
    start = law_of_states(start, len(law), "start")
    initial = chi_square(start, law)
    times = torch.as_tensor(times, dtype=torch.float64)
    powers = [torch.linalg.matrix_exp(time * (matrix - torch.eye(len(law)))) for time in times.tolist()]
    values = torch.tensor([chi_square(start @ power, law) for power in powers], dtype=torch.float64)
    return Decay(times, values, torch.exp(-2 * times / constant) * initial)


def block_dirichlet_form(probabilities: Tensor, law: BlockLaw, f: Tensor, g: Tensor) -> float:
    """Proposition 4.1.1 three ways: E(f, g) = E_{(X_{-K}, K)} Cov_{X_K | (X_{-K}, K)}(f, g), f, g (states, blocks).

    For f and g of X alone, repeated over blocks, this is the Dirichlet form of the X-marginal chain, and for a law
    that does not depend on the state the identity of Definition 4.1.6.
    """
    shape = (law.states, len(law.blocks))
    f, g = (_function(name, function, shape) for name, function in (("f", f), ("g", g)))
    probabilities = law_of_states(probabilities, law.states)
    covariance = 0.0
    for block, (states, weights, conditionals) in enumerate(law.fibres(probabilities)):
        own, other = f[:, block][states], g[:, block][states]
        own = own - (conditionals * own).sum(1, keepdim=True)
        other = other - (conditionals * other).sum(1, keepdim=True)
        covariance += float((weights * own * other).sum())
    return covariance


def _stochastic(transitions: Tensor) -> NDArray[np.float64]:
    """Return the matrix in float64; raises `InputError` unless its rows sum to one."""
    hint = "use non-negative probabilities that sum to one in every row"
    shape = tuple(transitions.shape)
    matrix: NDArray[np.float64] = checked_probabilities(
        "transitions", transitions, shape, tolerance=_ROW_SUM, hint=hint
    ).numpy()
    return matrix


def _function(field: str, function: Tensor, shape: tuple[int, ...]) -> Tensor:
    values = real_tensor(field, function, f"use the shape {shape}")
    if values.shape != shape or not bool(values.isfinite().all()):
        raise InputError(field, tuple(values.shape), f"give finite numbers of the shape {shape}")
    return values


def _closed_class(matrix: NDArray[np.float64]) -> NDArray[np.intp]:
    """The states (members,) of the one class that the chain never leaves."""
    count, label = connected_components(matrix > 0, connection="strong")
    leaves = [bool((matrix[label == one][:, label != one] > 0).any()) for one in range(count)]
    closed = [one for one in range(count) if not leaves[one]]
    if len(closed) > 1:
        hint = "the chain is reducible, with this many closed classes: use one that is ergodic"
        raise InputError("transitions", len(closed), hint)
    return np.flatnonzero(label == closed[0])


def _log_stationary(matrix: NDArray[np.float64], members: NDArray[np.intp]) -> NDArray[np.float64]:
    """Logarithms (states,) of the stationary law on the closed class `members`, minus infinity elsewhere."""
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
    log_law = np.full(len(matrix), -np.inf)
    log_law[members] = log_mass - logsumexp(log_mass)
    return log_law
