"""Closed forms for the outputs and costs of the value-guided random walk on enumerable trees.

An edge that ends in prefix y has conductance c(y) = p(y) V(y), so the walk is reversible for any values.
Prefixes below an edge of conductance zero are never visited. The claims are on p. 127 ff., section 3.3.1 of
the thesis, and the conductances are those of the Sinclair-Jerrum walk. `limits` select the tree.
"""

import math
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from trialogue.errors import InputError
from trialogue.oracles import Autoregressive
from trialogue.samplers.exact.electrical_network import network_of, walk_conductances
from trialogue.samplers.exact.elimination import SMALLEST, require_distribution
from trialogue.samplers.exact.prefix_trees import PrefixTree, TreeLimits, prefix_tree
from trialogue.verifiers.functions.function import VerifierLike

Sequence_ = tuple[int, ...]


class FirstLeaf(NamedTuple):
    """The walk up to its first leaf.

    Attributes:
        distribution: Probability that each complete sequence is the first leaf.
        moves: Expected number of moves, which equals the oracle calls without caching.
        nodes: Expected number of distinct nodes visited, which equals the oracle calls with caching.
    """

    distribution: dict[Sequence_, float]
    moves: float
    nodes: float

    @property
    def steps(self) -> float:
        """Expected number of steps of the lazy walk, which waits at every second step."""
        return 2 * self.moves


def first_leaf(oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]) -> FirstLeaf:
    """Return the distribution of the first leaf and its cost from series and parallel conductances.

    Args:
        oracle: Oracle.
        values: Values of prefixes.
        limits: `prompt`, `max_new_tokens` and `max_nodes`.

    Raises:
        InputError: If there are more than `max_nodes` prefixes or no leaf is reachable.
    """
    tree = prefix_tree(oracle, **limits)
    network = walk_conductances(tree, values)
    distribution = _leaves(tree, network.first_leaf)
    require_distribution("values", distribution.values())
    return FirstLeaf(distribution, math.fsum(network.visits), math.fsum(network.visited))


def stationary_probabilities(
    oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]
) -> dict[Sequence_, float]:
    """Return the stationary distribution of the walk, with mass c(y) + sum of c over children at prefix y.

    Conditioned on leaves, it is the restricted distribution for any positive inner values. Prefixes of mass
    zero are omitted. Arguments are those of `first_leaf`.
    """
    tree = prefix_tree(oracle, **limits)
    mass = _stationary(tree, values)
    return {tree.prefixes[node]: float(mass[node]) for node in np.flatnonzero(mass).tolist()}


def leaf_mass(oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]) -> float:
    """Return the stationary mass of the leaves, which is 1 / (2 H) for exact values and leaves at depth H.

    Let E_h be the sum of c over prefixes of h tokens. The mass is E_H / (2 sum E_h). It is at least 1 / (2 (1
    + e) H) if inner values are within a factor of 1 + e of the exact ones. Arguments are those of
    `first_leaf`.
    """
    tree = prefix_tree(oracle, **limits)
    return math.fsum(_stationary(tree, values)[tree.leaf])


def _stationary(tree: PrefixTree, values: VerifierLike) -> NDArray[np.float64]:
    """Return the stationary mass (n,) of every prefix."""
    if tree.leaf[0]:
        return np.ones(1)
    weight = walk_conductances(tree, values).weight
    total = math.fsum(weight)
    if not total >= SMALLEST:
        hint = f"the conductances sum to less than {SMALLEST:g}: beyond double precision"
        raise InputError("values", total, hint)
    mass: NDArray[np.float64] = weight / total
    require_distribution("values", mass.tolist())
    return mass


def action_level_distribution(
    oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]
) -> dict[Sequence_, float]:
    """Return the output distribution without backtracking, where token a has probability p(a | y) V(ya) / Z(y).

    With 0/1 values, this is tokenwise rejection. The sum is below 1 if a prefix without valued continuations
    can be reached. Arguments are those of `first_leaf`.
    """
    tree = prefix_tree(oracle, **limits)
    # Only ratios of the edges of one node matter: those of conditional probabilities do not underflow.
    conditional = tree.log_probs - tree.log_probs[np.maximum(tree.parent, 0)]
    return _leaves(tree, network_of(tree, values, conditional).descent)


def _leaves(tree: PrefixTree, probabilities: NDArray[np.float64]) -> dict[Sequence_, float]:
    """Return the complete sequences of positive probability."""
    places = np.flatnonzero(tree.leaf & (probabilities > 0)).tolist()
    return {tree.prefixes[leaf]: float(probabilities[leaf]) for leaf in places}
