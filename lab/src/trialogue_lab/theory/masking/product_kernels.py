"""Limits of predicting all positions at once: distances from distributions of independent positions.

A parallel predictor reads a sequence x and predicts a distribution g(x)_j for every position (site) j. It
samples all positions independently, so that the next sequence y has the probability prod_j g(x)_{j, y_j}
(Proposition 4.1.3). Sequences are in the order of `itertools.product`.
"""

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import rel_entr, softmax

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.probabilities import validate_probabilities
from trialogue.randomness import numpy_generator
from trialogue.validation import Count, Natural, validated

Array = NDArray[np.float64]
JointDistribution = Annotated[ArrayLike, Reals("vocab*", least=0)]
"""A joint distribution with one axis per position, shape (vocab,) * sites."""
_WIDTHS = [10.0**-digits for digits in range(1, 11)]


class ProductDistribution(NamedTuple):
    """Distribution of independent positions that approximates a given joint distribution.

    Attributes:
        distance: Distance from the given distribution, in the measure of the function that returned this.
        sites: Distribution of the token at each position (site), shape (sites, vocab).
    """

    distance: float
    sites: Array

    def joint(self) -> Array:
        """Return the joint probabilities (vocab,) * sites, with one axis per position."""
        return _compute_joint(self.sites)


@validated
def joint_distribution(sites: Annotated[ArrayLike, Reals("sites vocab", least=0)]) -> Array:
    """Return the joint distribution of independent positions.

    Args:
        sites: Distribution of the token at each position (site), shape (sites, vocab).

    Returns:
        Probabilities (vocab,) * sites, with one axis per position.
    """
    distributions = np.asarray(sites)
    return _compute_joint(validate_probabilities("sites", distributions, distributions.shape).numpy())


def _compute_joint(sites: Array) -> Array:
    joint = np.ones(())
    for site in sites:
        joint = np.multiply.outer(joint, site)
    return joint


@validated
def closest_in_divergence(distribution: JointDistribution) -> ProductDistribution:
    """Return the closest distribution of independent positions, measured by the KL divergence KL(p || q).

    It is the product q of the marginals of p. The divergence in nats is called the total correlation of p. No parallel
    predictor trained to imitate p can reach a smaller one.

    Args:
        distribution: Joint distribution p (vocab,) * sites, with one axis per position.
    """
    p = _normalize(distribution)
    sites = np.stack([p.sum(tuple(a for a in range(p.ndim) if a != axis)) for axis in range(p.ndim)])
    return ProductDistribution(float(rel_entr(p, _compute_joint(sites)).sum()), sites)


@validated
def closest_in_variation(
    distribution: JointDistribution, *, starts: Natural = 4, seed: int = 0
) -> ProductDistribution:
    """Search for the closest distribution of independent positions, measured by the total variation distance.

    The returned distance is exact for the returned distribution, and an upper bound on the smallest distance.
    L-BFGS minimizes a smoothed distance from several starting points.

    Args:
        distribution: Joint distribution p (vocab,) * sites, with one axis per position.
        starts: Number of random starts, in addition to the marginals and the most likely sequence.
        seed: Seed of the random starts.
    """
    p = _normalize(distribution)
    draws = numpy_generator(seed, "closest_in_variation")
    shape = (p.ndim, p.shape[0])
    mode = np.eye(shape[1])[list(np.unravel_index(p.argmax(), p.shape))]
    nearby = 0.9 * closest_in_divergence(p).sites + 0.1 * draws.dirichlet(np.ones(shape[1]), shape[0])
    first = [nearby, 0.9 * mode + 0.1 / shape[1]]
    first += [draws.dirichlet(np.ones(shape[1]), shape[0]) for _ in range(starts)]
    found = [
        ProductDistribution(_compute_variation(p, mode), mode),
        *(_minimize_variation(p, sites) for sites in first),
    ]
    return min(found, key=lambda product: product.distance)


@validated
def product_transitions(predictions: Annotated[ArrayLike, Reals("states sites vocab")]) -> Array:
    """Return the transition matrix of a model that samples the next token at every position independently.

    The probability of sequence y after sequence x is the product over positions j of g(x)_{j, y_j}, where g(x)_j is the
    predicted distribution at position j (Proposition 4.3.5).

    Args:
        predictions: Probabilities (states, sites, vocab) of the next token at each position (site) after each sequence
            (state).

    Returns:
        Transition matrix (states, states).

    Raises:
        InputError: If the predictions are not distributions for vocab ** sites states.
    """
    table = np.asarray(predictions)
    if table.shape[0] != table.shape[2] ** table.shape[1]:
        raise InputError("predictions", table.shape, "use the shape (vocab ** sites, sites, vocab)")
    hint = "give probabilities that sum to one for every site"
    validate_probabilities("predictions", table, table.shape, hint=hint)
    return np.stack([_compute_joint(sites).ravel() for sites in table])


class FactorizationGap(NamedTuple):
    """Distances of each row of a transition matrix from independent predictions of all positions.

    A row is the distribution of the next sequence. It is compared with the product of its marginals, one for each
    position.

    Attributes:
        divergence: KL divergence in nats of each row from the product, shape (states,).
        variation: Total variation distance of each row from the product, shape (states,).
    """

    divergence: Array
    variation: Array


@validated
def factorization_gap(
    transitions: Annotated[ArrayLike, Reals("states states")], sites: Count
) -> FactorizationGap:
    """Measure the distance of a model's next sequence from independent positions, for each current sequence.

    Each row of the transition matrix is the distribution of the next sequence. It is compared with the product of its
    marginals, and both distances are zero if the positions are independent. The divergence is the smallest to any
    product distribution. The total variation may not be the smallest (see `closest_in_variation`).

    Args:
        transitions: Transition matrix (states, states) with vocab ** sites states.
        sites: Number of positions of a sequence.

    Raises:
        InputError: If the number of states is not vocab ** sites for an integer vocab.
    """
    matrix = np.asarray(transitions)
    vocab = round(len(matrix) ** (1 / sites))
    if vocab**sites != len(matrix):
        raise InputError("sites", sites, f"the number of states {len(matrix)} must be vocab ** sites")
    rows = [row.reshape((vocab,) * sites) for row in matrix]
    products = [closest_in_divergence(row) for row in rows]
    return FactorizationGap(
        np.array([product.distance for product in products]),
        np.array(
            [_compute_variation(row, product.sites) for row, product in zip(rows, products, strict=True)]
        ),
    )


def _normalize(distribution: ArrayLike) -> Array:
    array = np.asarray(distribution, dtype=np.float64)
    validate_probabilities("distribution", array.ravel(), (array.size,))
    return array / array.sum()


def _compute_variation(distribution: Array, sites: Array) -> float:
    return float(np.abs(distribution - _compute_joint(sites)).sum()) / 2


def _minimize_variation(distribution: Array, sites: Array) -> ProductDistribution:
    """Minimize a smooth approximation of the total variation distance with L-BFGS."""
    logits = np.log(np.maximum(sites, 1e-12))

    def objective(free: Array, width: float) -> tuple[float, Array]:
        own = softmax(free.reshape(sites.shape), 1)
        difference = _compute_joint(own) - distribution
        rounded = np.sqrt(difference**2 + width**2)
        slope = ((difference / rounded / 2).ravel() @ _compute_derivatives(own)).reshape(sites.shape)
        slope = own * (slope - (own * slope).sum(1, keepdims=True))
        return float(rounded.sum()) / 2, slope.ravel()

    for width in _WIDTHS:
        options = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-10}
        logits = minimize(objective, logits.ravel(), (width,), jac=True, method="L-BFGS-B", options=options).x
    reached = softmax(logits.reshape(sites.shape), 1)
    return ProductDistribution(_compute_variation(distribution, reached), reached)


def _compute_derivatives(sites: Array) -> Array:
    """Return the derivatives (states, sites * vocab) of all joint probabilities by the probabilities of each site."""
    count, vocab = sites.shape
    columns = []
    for site in range(count):
        for token in range(vocab):
            changed = sites.copy()
            changed[site] = np.eye(vocab)[token]
            columns.append(_compute_joint(changed).ravel())
    return np.stack(columns, 1)
