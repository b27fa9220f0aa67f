"""Block approximate tensorization of entropy, and the sample bound of Theorem 4.1.4 that rests on it."""

import math
import sys
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax, xlogy
from torch import Tensor

from trialogue.errors import (
    InputError,
    at_least,
    finite_number,
    non_negative_number,
    probability,
    whole_number,
)
from trialogue.randomness import numpy_generator
from trialogue.theory.masking.block_laws import BlockLaw, block_dynamics, conditionals, law_of_states
from trialogue.theory.masking.mixing import poincare_constant


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


def approximate_tensorization(
    probabilities: Tensor, law: BlockLaw, *, starts: int = 8, seed: int = 0
) -> Tensorization:
    """Definition 4.1.9: the largest KL(r, q) / E_{X ~ r} E_K KL(r(. | X_{-K}, K), q(. | X_{-K}, K)) found over r.

    q is `probabilities` (states,), positive. The ratio at any r bounds C_AT(q) from below; it is maximised by
    L-BFGS over softmax laws from `starts` random laws, from q tilted along the slowest function of the block
    dynamics (where the ratio tends to the Poincaré constant) and from near point masses, and compared with the
    ratio at every point mass itself. Nothing says that the maximum found is the supremum. Raises `InputError` for
    q with a zero, and where the block dynamics are reducible (then no finite C_AT exists).
    """
    q = law_of_states(probabilities, law.states)
    if not bool((q > 0).all()):
        raise InputError("probabilities", 0.0, "use a law that is positive everywhere")
    whole_number("starts", starts, 0)
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


class SampleBound(NamedTuple):
    """Theorem 4.1.4: TV(p_theta^, p_X) < sqrt(C_AT / 2 (loss + masks_term ln(1/beta) + eps)) + samples_term."""

    bound: float
    masks_term: float
    samples_term: float


def sample_bound(
    *,
    sites: int,
    vocab_size: int,
    samples: int,
    masks: int,
    tensorization: float,
    loss: float,
    beta: float,
    cells: float,
    eps: float,
    delta: float,
) -> SampleBound:
    """Theorem 4.1.4 with its constants as proved: holds with probability at least 1 - `delta`.

    n = `samples`, each with m = `masks` masks; `tensorization` is C_AT of the fitted law (a lower bound of it proves
    nothing), `loss` the empirical L^_PL at the fit in nats, with the root over all of
    C_AT (L^ + B ln(1/beta) + eps); `beta` bounds every conditional of every theta from below (Assumption 4.1.3), and
    `cells` = C_eps cells of the parameters vary the log-probabilities by `eps` / 2 (Assumption 4.1.4). As a negative
    log-likelihood the loss contains the conditional entropy of the data, so the bound does not vanish with n.
    B = sqrt(2^{3N} |Omega|^N C_eps / (m delta)) + sqrt(ln(8 C_eps / delta) / (2n)),
    C = sqrt(|Omega|^{3N} / (8 delta n)).
    """
    for name, count in (("sites", sites), ("vocab_size", vocab_size), ("samples", samples), ("masks", masks)):
        whole_number(name, count, 1)
    _inside("delta", delta)
    _inside("beta", beta)
    tensorization = at_least("tensorization", tensorization, 1 - 1e-12, "C_AT is at least 1")
    loss, eps = non_negative_number("loss", loss), non_negative_number("eps", eps)
    if finite_number("cells", cells) < 1:
        raise InputError("cells", cells, "use a finite number of at least 1")
    masks_term = _root(3 * sites, vocab_size, sites, cells / (masks * delta))
    masks_term += math.sqrt(math.log(8 * cells / delta) / (2 * samples))
    samples_term = empirical_law_bound(sites=sites, vocab_size=vocab_size, samples=samples, delta=delta / 2)
    inside = tensorization / 2 * (loss + masks_term * math.log(1 / beta) + eps)
    return SampleBound(math.sqrt(inside) + samples_term, masks_term, samples_term)


def empirical_law_bound(*, sites: int, vocab_size: int, samples: int, delta: float) -> float:
    """Lemma 4.3.6: TV(p~_X, p_X) < sqrt(|Omega|^{3N} / (16 delta n)) with probability at least 1 - `delta`."""
    for name, count in (("sites", sites), ("vocab_size", vocab_size), ("samples", samples)):
        whole_number(name, count, 1)
    _inside("delta", delta)
    return _root(0, vocab_size, 3 * sites, 1 / (16 * delta * samples))


def mask_average_bound(
    *, sites: int, vocab_size: int, samples: int, masks: int, beta: float, delta: float
) -> float:
    """Corollary 4.3.1: |L^_PL - L~_PL| at one theta, with probability at least 1 - `delta`.

    (sqrt(2^{3N-1} |Omega|^N / (m delta)) + sqrt(ln(4 / delta) / (2n))) ln(1 / beta), from Lemma 4.3.5 with its own
    eps = sqrt(2^{N-1} |Omega|^N / (m delta)).
    """
    for name, count in (("sites", sites), ("vocab_size", vocab_size), ("samples", samples), ("masks", masks)):
        whole_number(name, count, 1)
    _inside("delta", delta)
    _inside("beta", beta)
    masks_term = _root(3 * sites - 1, vocab_size, sites, 1 / (masks * delta))
    return (masks_term + math.sqrt(math.log(4 / delta) / (2 * samples))) * math.log(1 / beta)


def _root(twos: int, vocab_size: int, power: int, factor: float) -> float:
    """sqrt(2^twos |Omega|^power factor), infinite where it is beyond a float: a bound that says nothing."""
    log = (twos * math.log(2) + power * math.log(vocab_size) + math.log(factor)) / 2
    return math.exp(log) if log < math.log(sys.float_info.max) else math.inf


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


def _inside(field: str, value: float) -> None:
    probability(field, value, zero=False, one=False, mend="use a number between 0 and 1")
