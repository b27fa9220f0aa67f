"""Closed forms for the outputs and costs of the value-guided random walk on small trees (section 3.3.1 of the thesis).

The walk moves along the edges of the tree of prefixes. A leaf is a complete sequence. The edge that ends in
prefix y has the weight c(y) = p(y) V(y), where p is the probability of the prefix and V its value. The walk
chooses an edge with probability proportional to its weight, so it is equivalent to an electrical network with
conductances c.
"""

import math
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.samplers.exact.electrical_network import build_network, walk_conductances
from trialogue.samplers.exact.elimination import SMALLEST, require_distribution
from trialogue.samplers.exact.prefix_trees import PrefixTree, TreeLimits, prefix_tree
from trialogue.verifiers.functions.function import VerifierLike

Sequence_ = tuple[int, ...]


class FirstLeaf(NamedTuple):
    """Output distribution and cost of a random walk that stops at its first complete sequence.

    Attributes:
        distribution: Probability that each complete sequence is the first one that the walk reaches.
        moves: Expected number of moves, which equals the number of model calls without caching.
        nodes: Expected number of distinct prefixes visited, which equals the number of model calls with caching.
    """

    distribution: dict[Sequence_, float]
    moves: float
    nodes: float

    @property
    def steps(self) -> float:
        """Expected number of steps of the lazy walk until it reaches its first complete sequence.

        The lazy walk stays in place with probability 1/2 at each step, so it needs twice as many steps as moves.
        """
        return 2 * self.moves


def first_leaf(oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]) -> FirstLeaf:
    """Return the distribution of the first complete sequence that a value-guided walk reaches, and its expected cost.

    The walk moves along the tree of prefixes. The tree is treated as an electrical network of series and parallel
    conductances.

    Args:
        oracle: Next-token model.
        values: Verifier that returns the value of each prefix.
        limits: `prompt` to start from, `max_new_tokens` and the limit `max_nodes` on the number of prefixes.

    Raises:
        InputError: If there are more than `max_nodes` prefixes or no complete sequence is reachable.
    """
    tree = prefix_tree(oracle, **limits)
    network = walk_conductances(tree, values)
    distribution = _select_complete_sequences(tree, network.first_leaf)
    require_distribution("values", distribution.values())
    return FirstLeaf(distribution, math.fsum(network.visits), math.fsum(network.visited))


def stationary_probabilities(
    oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]
) -> dict[Sequence_, float]:
    """Return the stationary distribution of a value-guided random walk over prefixes.

    The probability of prefix y is proportional to c(y) plus c of its children, with c(y) = p(y) V(y).
    Prefixes of probability zero are omitted.

    Args:
        oracle: Next-token model with probability p(y) of each prefix.
        values: Verifier that returns the value V of each prefix.
        limits: `prompt` to start from, `max_new_tokens` and the limit `max_nodes` on the number of prefixes.

    Returns:
        Probability of each prefix.
    """
    tree = prefix_tree(oracle, **limits)
    mass = _compute_stationary(tree, values)
    return {tree.prefixes[node]: float(mass[node]) for node in np.flatnonzero(mass).tolist()}


def leaf_mass(oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]) -> float:
    """Return the stationary probability that the walk is at a complete sequence.

    If all sequences have H tokens, it is E_H / (2 sum_h E_h), where E_h is the sum of p(y) V(y) over prefixes
    y of h tokens. For exact values V, it is 1 / (2 H). If values are wrong by a factor of at most 1 + e, it
    is at least 1 / (2 (1 + e) H).

    Args:
        oracle: Next-token model.
        values: Verifier that returns the value of each prefix.
        limits: `prompt` to start from, `max_new_tokens` and the limit `max_nodes` on the number of prefixes.
    """
    tree = prefix_tree(oracle, **limits)
    return math.fsum(_compute_stationary(tree, values)[tree.leaf])


def _compute_stationary(tree: PrefixTree, values: VerifierLike) -> NDArray[np.float64]:
    """Return the stationary mass (n,) of every prefix."""
    if tree.leaf[0]:
        return np.ones(1)
    weight = walk_conductances(tree, values).weight
    total = math.fsum(weight)
    if not total >= SMALLEST:
        hint = f"the conductances sum to less than {SMALLEST:g}, the limit of double precision"
        raise InputError("values", total, hint)
    mass: NDArray[np.float64] = weight / total
    require_distribution("values", mass.tolist())
    return mass


def action_level_distribution(
    oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]
) -> dict[Sequence_, float]:
    """Return the output distribution of sampling tokens by value without backtracking.

    After prefix y, token a is sampled with probability p(a | y) V(ya) / Z(y), where p is the model, V the value and
    Z(y) the normalizer. With values 0 and 1, this is tokenwise rejection. The sum of the probabilities is below 1 if a
    prefix can be reached whose continuations all have value zero.

    Args:
        oracle: Next-token model.
        values: Verifier that returns the value of each prefix.
        limits: `prompt` to start from, `max_new_tokens` and the limit `max_nodes` on the number of prefixes.

    Returns:
        Probability of each complete sequence.
    """
    tree = prefix_tree(oracle, **limits)
    # Only ratios of the edges of one node matter, and conditional probabilities do not underflow.
    conditional = tree.log_probs - tree.log_probs[np.maximum(tree.parent, 0)]
    return _select_complete_sequences(tree, build_network(tree, values, conditional).descent)


def _select_complete_sequences(
    tree: PrefixTree, probabilities: NDArray[np.float64]
) -> dict[Sequence_, float]:
    """Return the complete sequences of positive probability."""
    places = np.flatnonzero(tree.leaf & (probabilities > 0)).tolist()
    return {tree.prefixes[leaf]: float(probabilities[leaf]) for leaf in places}
