"""Markov chains on all states as matrices: stationary law, Dirichlet form, Poincaré constant, mixing, chi^2 decay.

A transition matrix P (states, states) float64 has rows that sum to one; row x is the law of the next state. Where a
function takes a chain and a model instead, the matrix is that of the chain's own step
(`trialogue.samplers.exact.transition_matrix`). Equations are those of chapter 4 of the thesis.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp
from torch import Tensor

from trialogue.arrays import Reals, real_tensor
from trialogue.errors import InputError
from trialogue.probabilities import checked_probabilities
from trialogue.samplers.exact import ergodicity, transition_matrix
from trialogue.validation import Probability, validated
from trialogue_lab.theory.masking.block_laws import BlockLaw, joint_block_dynamics, law_of_states

_ROW_SUM = 1e-9
_SMALLEST_GAP = 1e-10  # eigenvalues of a matrix of norm two are good to a few 1e-16
_LONGEST = 2**33
_TIE = 1e-12


def stationary_law(transitions: Any, model: Any = None) -> Tensor:
    """The stationary law (states,) of a chain; small probabilities are as precise as their logarithms.

    By elimination without subtraction (Grassmann, Taksar and Heyman 1985), in logarithms. States that the chain leaves
    for good have probability zero. Raises `InputError` where several closed classes make it not unique.
    """
    matrix = _matrix(transitions, model)
    return torch.from_numpy(np.exp(_log_stationary(matrix, _closed_class(matrix))))


def reversibility_gap(transitions: Any, model: Any = None, *, law: Tensor | None = None) -> float:
    """Largest |mu(x) P(x, y) - mu(y) P(y, x)|, zero for a reversible chain; mu is stationary unless `law` is given."""
    matrix = _matrix(transitions, model)
    law = _given_or_stationary(matrix, law)
    flow = law.numpy()[:, None] * matrix
    return float(np.abs(flow - flow.T).max())


def dirichlet_form(transitions: Any, f: Tensor, g: Tensor, law: Tensor | None = None) -> float:
    """E_P(f, g) = <f, (I - P) g>_mu of Definition 4.1.4, for f and g (states,); mu is stationary unless given.

    For a reversible chain it is 1/2 sum_{x,y} mu(x) P(x, y) (f(x) - f(y)) (g(x) - g(y)).
    """
    matrix = _matrix(transitions, None)
    f, g = (_function(name, function, (len(matrix),)) for name, function in (("f", f), ("g", g)))
    law = _given_or_stationary(matrix, law)
    return float((law * f) @ (g - torch.from_numpy(matrix) @ g))


def poincare_constant(transitions: Any, model: Any = None) -> float:
    """C = sup Var_mu(f) / E_P(f, f) (Definition 4.1.5): 1 / (1 - lambda_2(P)) for a reversible chain.

    `transitions` is a transition matrix, or a chain with its `model`. mu is the chain's stationary law; of a chain
    that is not reversible only the reversible part (P + P*) / 2 enters, as in the Dirichlet form. The relative error
    is about 1e-16 C. Raises `InputError` where the chain is reducible, and where C is above 1e10.
    """
    matrix = _matrix(transitions, model)
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
def mixing_time(transitions: Any, model: Any = None, *, eps: Probability = 0.25) -> float:
    """Smallest t with max_x TV(P^t(x, .), mu) <= `eps`: a whole number of steps, as a float.

    `transitions` is a transition matrix, or a chain with its `model`. A distance within 1e-12 `eps` of `eps` counts
    as equal to it; of a slow chain rounding may move t by a share of 1e-16 t. Raises `InputError` where the chain is
    not ergodic (reducible or periodic), and where it mixes too slowly for double precision.
    """
    matrix = _matrix(transitions, model)
    members = _closed_class(matrix)
    period = ergodicity(torch.from_numpy(matrix)).period
    if period > 1:
        raise InputError("transitions", period, "the chain is periodic with this period and never mixes")
    law = np.exp(_log_stationary(matrix, members))
    reached_at = eps * (1 + _TIE)
    if 1 - law.min() <= reached_at:
        return 0.0
    # Powers of P - 1 mu^T are P^t - 1 mu^T without the eigenvalue one, whose rounding errors would add up.
    powers = [matrix - law]
    while _distance(powers[-1]) > reached_at:
        if 2 ** len(powers) > _LONGEST:
            hint = "not mixed after this many steps: beyond double precision"
            raise InputError("transitions", 2 ** len(powers), hint)
        powers.append(powers[-1] @ powers[-1])
    if len(powers) == 1:
        return 1.0
    steps, reached = 2 ** (len(powers) - 2), powers[-2]
    for exponent in range(len(powers) - 3, -1, -1):
        further = reached @ powers[exponent]
        if _distance(further) > reached_at:
            steps, reached = steps + 2**exponent, further
    return float(steps + 1)


def chi_square(first: Tensor, second: Tensor) -> float:
    """chi^2(p, mu) = sum (p - mu)^2 / mu of two laws (states,); infinite where p is not absolutely continuous."""
    second = real_tensor("second", second, "give a law (states,)")
    second = law_of_states(second, second.numel(), "second")
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
    transitions: Any,
    start: Tensor,
    times: Annotated[Sequence[float] | Tensor, Reals("times", least=0)],
    *,
    discrete: bool = False,
) -> Decay:
    """How chi^2(p_t, mu) falls from the law `start` (states,), beside the bound of Definition 4.1.5.

    In continuous time (jumps at rate one) the bound is e^{-2t/C} chi^2(p_0, mu). With `discrete` steps it is
    (1 - 1/C)^{2t} chi^2(p_0, mu), which needs a reversible P without negative eigenvalues, as block dynamics are:
    raises `InputError` otherwise, for times that are negative, not finite or no whole steps, and as
    `poincare_constant`.
    """
    matrix = torch.from_numpy(_matrix(transitions, None))
    law, constant = stationary_law(matrix), poincare_constant(matrix)
    start = law_of_states(start, len(law), "start")
    initial = chi_square(start, law)
    if discrete:
        _require_positive(matrix, law)
    times = torch.as_tensor(times, dtype=torch.float64)
    values, bounds = [], []
    for time in times.tolist():
        if discrete:
            if time != int(time):
                raise InputError("times", time, "use whole numbers of steps")
            power = torch.linalg.matrix_power(matrix, int(time))
            bounds.append((1 - 1 / constant) ** (2 * time) * initial)
        else:
            power = torch.linalg.matrix_exp(time * (matrix - torch.eye(len(law))))
            bounds.append(math.exp(-2 * time / constant) * initial)
        values.append(chi_square(start @ power, law))
    return Decay(times, *torch.tensor((values, bounds), dtype=torch.float64))


class BlockDirichlet(NamedTuple):
    """E(f, g) of the chain (4.26) on (X, K): from its matrix, from all its jumps, and by Proposition 4.1.1."""

    matrix: float
    jumps: float
    covariance: float


def block_dirichlet_form(probabilities: Tensor, law: BlockLaw, f: Tensor, g: Tensor) -> BlockDirichlet:
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
    pairs = joint_block_dynamics(probabilities, law)
    mass = (probabilities[:, None] * law.each_state()).flatten()
    first, second = f.flatten(), g.flatten()
    differences = (first[:, None] - first) * (second[:, None] - second)
    return BlockDirichlet(
        dirichlet_form(pairs, first, second, mass),
        float((mass[:, None] * pairs * differences).sum() / 2),
        covariance,
    )


def _matrix(transitions: Any, model: Any) -> NDArray[np.float64]:
    given = isinstance(transitions, Tensor | np.ndarray | list)
    if given and model is not None:
        hint = "a transition matrix needs none: give a chain with it"
        raise InputError("model", type(model).__name__, hint)
    if model is not None:
        transitions = transition_matrix(transitions, model)
    elif not given:
        raise InputError("model", None, f"give the model that {type(transitions).__name__} runs on")
    matrix: NDArray[np.float64] = real_tensor("transitions", transitions, "use a square matrix").numpy()
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError("transitions", matrix.shape, "use a square matrix")
    hint = "use finite probabilities that are not negative: every row sums to one"
    checked_probabilities("transitions", matrix, matrix.shape, tolerance=_ROW_SUM, hint=hint)
    return matrix


def _given_or_stationary(matrix: NDArray[np.float64], law: Tensor | None) -> Tensor:
    if law is None:
        return stationary_law(matrix)
    return law_of_states(law, len(matrix), "law")


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


def _distance(difference: NDArray[np.float64]) -> float:
    return float(np.abs(difference).sum(1).max()) / 2


def _require_positive(matrix: Tensor, law: Tensor) -> None:
    if reversibility_gap(matrix, law=law) > 1e-12:
        raise InputError("discrete", True, "the bound on steps needs a reversible chain")
    support = law > 0
    scale = law[support].sqrt()
    lowest = float(torch.linalg.eigvalsh(scale[:, None] * matrix[support][:, support] / scale)[0])
    if lowest < -1e-10:
        raise InputError("transitions", lowest, "the bound on steps needs eigenvalues that are not negative")
