"""Block approximate tensorization of entropy: its constant from below by witnesses, from above by a product law."""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from scipy.special import softmax, xlogy
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.randomness import numpy_generator
from trialogue.validation import Natural, validated
from trialogue_lab.theory.masking.block_laws import BlockLaw, block_dynamics, conditionals, law_of_states
from trialogue_lab.theory.masking.mixing import poincare_constant


def block_divergence(first: Tensor, second: Tensor, law: BlockLaw) -> float:
    """E_{X ~ r} E_{K ~ p_K(. | X)} KL(r(. | X_{-K}, K), q(. | X_{-K}, K)) of r and q (states,), in nats."""
    r, q = (
        law_of_states(one, law.states, name).numpy() for one, name in ((first, "first"), (second, "second"))
    )
    return _Entropies(q, law).of_blocks(r)


class Tensorization(NamedTuple):
    """A certified lower bound of C_AT(q): the ratio of Definition 4.1.9 at the law `witness` (states,)."""

    lower_bound: float
    witness: Tensor


@validated
def approximate_tensorization(
    probabilities: Tensor, law: BlockLaw, *, starts: Natural = 8, seed: int = 0
) -> Tensorization:
    """Definition 4.1.9: the largest KL(r, q) / E_{X ~ r} E_K KL(r(. | X_{-K}, K), q(. | X_{-K}, K)) found over r.

    q is `probabilities` (states,), positive. The ratio at any r bounds C_AT(q) from below; it is maximised by
    L-BFGS over softmax laws from `starts` random laws, from q tilted along the slowest function of the block
    dynamics (where the ratio tends to the Poincaré constant) and from near point masses, and compared with the
    ratio at every point mass itself. Nothing says that the maximum found is the supremum. Raises `InputError` for
    q with a zero, and where the block dynamics are reducible (then no finite C_AT exists).
    """
    q = _positive_law(probabilities, law)
    entropies = _Entropies(q.numpy(), law)
    slow = _slowest(q, law)
    draws = numpy_generator(seed, "tensorization")
    points = list(np.eye(law.states))
    masses = sorted(points, key=entropies.ratio)[-2:]
    logits = [np.log(entropies.q) + sign * slow for sign in (0.05, 1.0, -1.0)]
    logits += [np.log(entropies.q) + 2.0 * draws.standard_normal(law.states) for _ in range(starts)]
    logits += [np.log(0.98 * mass + 0.02 * entropies.q) for mass in masses]
    laws = [*points, entropies.q * (1 + 1e-5 * slow), *map(entropies.climb, logits)]
    witness = max(laws, key=entropies.ratio)
    return Tensorization(entropies.ratio(witness), torch.from_numpy(witness))


def smallest_conditional(probabilities: Tensor, law: BlockLaw) -> float:
    """beta of Assumption 4.1.3 for one parameter: the smallest positive p(x_K | x_{-K}, K)."""
    table = conditionals(probabilities, law)
    return float(table[table > 0].min())


def tensorization_upper_bound(probabilities: Tensor, law: BlockLaw) -> float:
    """A number that C_AT(q) of Definition 4.1.9 is certain not to exceed, for q = `probabilities` (states,), positive.

    A product law has C_AT = 1 / min_i P(site i is masked), by Shearer's inequality (N / k for k uniformly random
    sites). As the entropies on both sides are minima over constants of integrals of non-negative functions, C_AT(q)
    is at most that times max(q / pi) / min(q / pi) for any product law pi (Holley and Stroock): here the pi of least
    ratio, by linear programming. Raises `InputError` for q with a zero, and for a block law that depends on the state.
    """
    q = _positive_law(probabilities, law)
    if law.adaptive:
        raise InputError("law", "adaptive", "use one that does not depend on the state")
    masked = float((law.given[0] @ law.blocks.double()).min())
    tokens = whole_sequences(law.vocab_size, law.sites)
    chosen = torch.nn.functional.one_hot(tokens, law.vocab_size).flatten(1).double().numpy()
    logs, ones = q.log().numpy(), np.ones((law.states, 1))
    # The last two numbers are the least and the largest of log q - log pi, whose distance is made small.
    rows = np.block([[-chosen, 0 * ones, -ones], [chosen, ones, 0 * ones]])
    cost = np.array([0.0] * chosen.shape[1] + [-1.0, 1.0])
    found = linprog(cost, rows, np.concatenate((-logs, logs)), bounds=(None, None))
    fitted = chosen @ found.x[:-2] if found.success else np.zeros_like(logs)
    return math.exp(float(np.ptp(logs - fitted))) / masked


def _positive_law(probabilities: Tensor, law: BlockLaw) -> Tensor:
    q = law_of_states(probabilities, law.states)
    if not bool((q > 0).all()):
        raise InputError("probabilities", 0.0, "use a law that is positive everywhere")
    return q


class _Entropies:
    """Relative entropies to q (states,) under a block law, all blocks at once: arrays are (blocks, states)."""

    def __init__(self, q: NDArray[np.float64], law: BlockLaw) -> None:
        self.q = q
        self._given = law.each_state().T.numpy()
        shape = self._given.shape
        self._rest = np.empty(shape, dtype=np.int64)
        self._own = np.empty(shape)
        for block, (states, _, own) in enumerate(law.fibres(torch.from_numpy(q))):
            # The first state of a fibre names it.
            self._rest[block, states.numpy()] = states[:, :1].numpy() + block * shape[1]
            self._own[block, states.numpy()] = own.numpy()
        self._positive = self._own > 0

    def of_all(self, r: NDArray[np.float64]) -> float:
        """KL(r, q)."""
        return _weighted_excess(self.q, r)

    def of_blocks(self, r: NDArray[np.float64]) -> float:
        """The mean relative entropy of the conditionals."""
        conditionals, totals = self._conditionals(r)
        return _weighted_excess(self._own, conditionals, totals)

    def ratio(self, r: NDArray[np.float64]) -> float:
        """KL(r, q) over the mean relative entropy of the conditionals; minus infinity at q itself."""
        below = self.of_blocks(r)
        return self.of_all(r) / below if below > 0 else -math.inf

    def climb(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law (states,) to which L-BFGS on log-probabilities raises the ratio from `logits` (states,)."""

        def objective(free: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            r = softmax(free)
            conditionals, _ = self._conditionals(r)
            above, below = self.of_all(r), self.of_blocks(r)
            if not (above > 0 and below > 0):
                return math.inf, np.zeros_like(free)
            relative = np.log(conditionals, out=np.zeros_like(conditionals), where=conditionals > 0)
            relative -= np.log(self._own, out=np.zeros_like(conditionals), where=self._positive)
            slope = (self._given * relative).sum(0) / below - np.log(np.maximum(r, 1e-300) / self.q) / above
            return math.log(below / above), r * (slope - r @ slope)

        found = minimize(objective, logits, jac=True, method="L-BFGS-B", options={"maxiter": 500})
        law: NDArray[np.float64] = softmax(found.x)
        return law

    def _conditionals(self, r: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """r(x_K | x_{-K}, K), and the weight of the rest, both by block and state."""
        weights = self._given * r
        sums = np.bincount(self._rest.ravel(), weights.ravel(), weights.size).astype(np.float64)
        totals = sums[self._rest]
        return weights / np.where(totals > 0, totals, 1.0), totals


def _weighted_excess(
    q: NDArray[np.float64], r: NDArray[np.float64], scale: NDArray[np.float64] | float = 1.0
) -> float:
    """Sum of scale q (u ln u - u + 1) with u = r / q: a relative entropy without cancellation where r is near q."""
    if (r[q == 0] > 0).any():
        return math.inf
    difference = r / np.where(q > 0, q, 1.0) - 1
    series = difference**2 * (1 / 2 - difference * (1 / 6 - difference * (1 / 12 - difference / 20)))
    exact = xlogy(difference + 1, difference + 1) - difference
    return float((scale * q * np.where(np.abs(difference) < 1e-3, series, exact)).sum())


def _slowest(q: Tensor, law: BlockLaw) -> NDArray[np.float64]:
    """The eigenfunction (states,) of the second eigenvalue of the block dynamics, at most one in size."""
    matrix = block_dynamics(q, law)
    poincare_constant(matrix)  # refuses a reducible chain
    scale = q.sqrt()
    vectors = torch.linalg.eigh(scale[:, None] * matrix / scale)[1]
    slow = vectors[:, -2] / scale
    function: NDArray[np.float64] = (slow / slow.abs().max()).numpy()
    return function
