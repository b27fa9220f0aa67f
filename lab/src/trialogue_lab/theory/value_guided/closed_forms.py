"""What the value-guided walk samples and what it costs, in closed form, on a tree that can be listed.

An edge that ends in the prefix y conducts c(y) = p(y) V(y): the walk is reversible, whatever the values. Prefixes below
an edge of conductance zero are never visited and have no mass, whatever their values. The thesis'
claims are on p. 127 ff., section 3.3.1; the conductances are those of the Sinclair-Jerrum walk. `limits` say which tree
is listed.
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
from trialogue.verifiers.function import VerifierLike

Sequence_ = tuple[int, ...]


class FirstLeaf(NamedTuple):
    """The walk up to its first leaf.

    `law` maps each complete sequence to the probability that it is the first. `moves` is the expected number of steps
    up or down, each of which asks for the law of the node that it leaves: the queries of a walk that remembers nothing.
    With laziness there are twice as many `steps`. `nodes` is the expected number of different nodes whose law is asked
    for: the queries of a walk that remembers them all.
    """

    law: dict[Sequence_, float]
    moves: float
    nodes: float

    @property
    def steps(self) -> float:
        """The expected number of steps with laziness, which waits at every second one."""
        return 2 * self.moves


def first_leaf(oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]) -> FirstLeaf:
    """The law of the first leaf and its cost, by series and parallel conductances.

    Raises `InputError` for more than `max_nodes` prefixes, and where the walk reaches no leaf.
    """
    tree = prefix_tree(oracle, **limits)
    network = walk_conductances(tree, values)
    law = _leaves(tree, network.first_leaf)
    require_distribution("values", law.values())
    return FirstLeaf(law, math.fsum(network.visits), math.fsum(network.visited))


def stationary_law(
    oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]
) -> dict[Sequence_, float]:
    """The stationary law of the walk that goes on for ever: of a prefix y the mass c(y) + sum of c over its children.

    Given that it is a leaf, this is the restricted law for any positive values inside. Prefixes of mass zero are left
    out. Raises `InputError` as `first_leaf` does, but not where no leaf can be reached.
    """
    tree = prefix_tree(oracle, **limits)
    mass = _stationary(tree, values)
    return {tree.prefixes[node]: float(mass[node]) for node in np.flatnonzero(mass).tolist()}


def leaf_mass(oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]) -> float:
    """The stationary mass of the leaves: 1 / (2 H) for exact values, where all leaves lie at depth H.

    With c summed over the prefixes of h tokens to E_h it is E_H / (2 sum E_h), and at least 1 / (2 (1 + e) H) for
    values inside that are within a factor of 1 + e of the exact ones. Raises `InputError` as `stationary_law` does.
    """
    tree = prefix_tree(oracle, **limits)
    return math.fsum(_stationary(tree, values)[tree.leaf])


def _stationary(tree: PrefixTree, values: VerifierLike) -> NDArray[np.float64]:
    """The stationary mass (n,) of every prefix."""
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


def action_level_law(
    oracle: Autoregressive, values: VerifierLike, **limits: Unpack[TreeLimits]
) -> dict[Sequence_, float]:
    """The law of going down only: each token a with probability proportional to p(a | y) V(ya), never back.

    With 0/1 values this is tokenwise rejection. What is missing from 1 is the probability of coming to a prefix none
    of whose continuations has a value. Raises `InputError` as `stationary_law` does.
    """
    tree = prefix_tree(oracle, **limits)
    # Only ratios of the edges of one node matter: those of conditional probabilities do not underflow.
    conditional = tree.log_probs - tree.log_probs[np.maximum(tree.parent, 0)]
    return _leaves(tree, network_of(tree, values, conditional).descent)


def _leaves(tree: PrefixTree, probabilities: NDArray[np.float64]) -> dict[Sequence_, float]:
    """The complete sequences of positive probability."""
    places = np.flatnonzero(tree.leaf & (probabilities > 0)).tolist()
    return {tree.prefixes[leaf]: float(probabilities[leaf]) for leaf in places}
