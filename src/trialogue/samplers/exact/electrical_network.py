"""Exact hitting probabilities of random walks on trees, computed from an electrical network.

The walk leaves a node along each of its edges in proportion to the conductance of the edge. The rules for
resistors in series and in parallel then give the probability of each first leaf and the number of visits of
each node. All terms are sums of positive numbers, so no precision is lost.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trialogue.arrays import integer_tensor, real_tensor
from trialogue.errors import InputError
from trialogue.samplers.exact.elimination import SMALLEST
from trialogue.samplers.exact.prefix_trees import PrefixTree
from trialogue.validation import InstanceOf, validated
from trialogue.verifiers.functions.function import VerifierLike

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Conductances:
    """A random walk on a rooted tree whose edges have weights (conductances).

    The walk starts at the root and stops at the first leaf. It leaves a node along each of its edges,
    including the one to the parent, with a probability proportional to the conductance of the edge. The
    conductance between a node and a set of leaves is the current that a unit voltage between them causes. A
    dead end is a node without a leaf at or below it.

    Args:
        parent: Index (n,) int64 of the parent of each node, -1 for the root. The root is the first node, and
            parents come before their children.
        edge: Conductance (n,) float64 of the edge to the parent. The first entry is not used.
        leaf: Whether the walk stops at each node (n,).

    Raises:
        InputError: If the parents do not define a tree, or a conductance is negative or not finite.
    """

    parent: NDArray[np.int64]
    edge: Array
    leaf: NDArray[np.bool_]

    def __post_init__(self) -> None:
        parent = integer_tensor(
            "parent", self.parent, "give the index (n,) of the parent of each node"
        ).numpy()
        below = parent[1:] if parent.ndim == 1 else parent
        if (
            parent.ndim != 1
            or len(parent) == 0
            or parent[0] != -1
            or not bool(((below >= 0) & (below < np.arange(1, len(below) + 1))).all())
        ):
            raise InputError(
                "parent", self.parent, "give the root first, and every parent before its children"
            )
        edge = real_tensor(
            "edge", self.edge, "give the conductance (n,) of the edge to each node's parent"
        ).numpy()
        if edge.shape != parent.shape or not bool(np.isfinite(edge[1:]).all() and (edge[1:] >= 0).all()):
            raise InputError(
                "edge", self.edge, "give finite conductances (n,) of at least 0, one for each node"
            )
        leaf = np.asarray(self.leaf)
        if leaf.shape != parent.shape or leaf.dtype != np.bool_:
            raise InputError("leaf", self.leaf, "give True or False (n,) for each node")
        for name, array in (("parent", parent), ("edge", edge), ("leaf", leaf)):
            object.__setattr__(self, name, array)

    @cached_property
    def _levels(self) -> list[NDArray[np.int64]]:
        """Nodes by depth, without the root."""
        depth = np.zeros(len(self.parent), dtype=np.int64)
        places = np.arange(1, len(self.parent))
        # Repeat until the depths of all parents are correct.
        while True:
            deeper = depth[self.parent[places]] + 1
            if bool((depth[places] == deeper).all()):
                break
            depth[places] = deeper
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(depth))[:-1])[1:]

    def _sum_over_children(self, values: Array, over: NDArray[np.int64] | slice = slice(1, None)) -> Array:
        """Return the sum (n,) of `values` (n,) over the children of each node, optionally restricted to `over`."""
        places = np.arange(len(self.parent))[over]
        summed = np.zeros(len(self.parent))
        np.add.at(summed, self.parent[places], values[places])
        return summed

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """Whether the walk can reach each node (n,)."""
        reached = np.zeros(len(self.parent), dtype=np.bool_)
        reached[0] = True
        for level in self._levels:
            reached[level] = reached[self.parent[level]] & (self.edge[level] > 0)
        return reached

    @cached_property
    def weight(self) -> Array:
        """Sum (n,) of the conductances of the edges of each node, 0 for nodes that cannot be reached.

        A walk without leaves would visit nodes in proportion to this weight.
        """
        edge = np.where(self.reached, self.edge, 0.0)
        edge[0] = 0.0
        return edge + self._sum_over_children(edge)

    @cached_property
    def _ranks(self) -> list[NDArray[np.int64]]:
        """Indices of the first children of all nodes, then of the second children, and so on."""
        order = 1 + np.argsort(self.parent[1:], kind="stable")
        parents = self.parent[order]
        rank = np.arange(len(order)) - np.searchsorted(parents, parents)
        by_rank = np.argsort(rank, kind="stable")
        return np.split(order[by_rank], np.cumsum(np.bincount(rank))[:-1]) if len(order) else []

    def _sum_over_siblings(self, values: Array) -> Array:
        """Return the sum (n,) of `values` (n,) over the siblings of each node, excluding the node.

        Siblings before and after a node are summed separately. Subtracting the node from the sum would lose precision.
        """
        summed = np.zeros(len(self.parent))
        for ranks in (self._ranks, self._ranks[::-1]):
            passed = np.zeros(len(self.parent))
            for nodes in ranks:
                summed[nodes] += passed[self.parent[nodes]]
                passed[self.parent[nodes]] += values[nodes]
        return summed

    @cached_property
    def below(self) -> Array:
        """Conductance (n,) between each node and the leaves below it, infinite for leaves and 0 for dead ends."""
        below = np.where(self.leaf, np.inf, 0.0)
        for level in reversed(self._levels):
            below += np.where(self.leaf, 0.0, self._sum_over_children(_series(self.edge, below), level))
        return below

    @cached_property
    def through(self) -> Array:
        """Conductance (n,) from the parent of each node, through the node, to the leaves below the node."""
        return _series(self.edge, self.below)

    @cached_property
    def above(self) -> Array:
        """Conductance (n,) from each node, through its parent, to the leaves that are not below it."""
        above = np.zeros(len(self.parent))
        others = self._sum_over_siblings(self.through)
        for level in self._levels:
            above[level] = _series(self.edge[level], above[self.parent[level]] + others[level])
        return above

    @cached_property
    def first_leaf(self) -> Array:
        """Probability (n,) that the first leaf of the walk is at or below each node.

        Raises:
            InputError: If the conductance from the root to the leaves is below 1e-300.
        """
        if not self.below[0] >= SMALLEST:
            hint = f"give positive values along a path to a leaf, with a conductance of at least {SMALLEST:g}"
            raise InputError("values", float(self.below[0]), hint)
        current = np.zeros(len(self.parent))
        current[0] = 1.0
        for level in self._levels:
            parent = self.parent[level]
            share = np.divide(
                self.through[level],
                self.below[parent],
                out=np.zeros(len(level)),
                where=np.isfinite(self.below[parent]) & (self.below[parent] > 0),
            )
            current[level] = current[parent] * share
        return current

    @cached_property
    def descent(self) -> Array:
        """Probability (n,) of reaching each node by a walk that only moves to children."""
        descent = np.zeros(len(self.parent))
        descent[0] = 1.0
        offered = self._sum_over_children(self.edge)
        for level in self._levels:
            parent = self.parent[level]
            share = np.zeros(len(level))
            np.divide(self.edge[level], offered[parent], out=share, where=offered[parent] > 0)
            descent[level] = descent[parent] * share
        return descent

    @cached_property
    def potential(self) -> Array:
        """Expected number (n,) of visits of each node divided by `weight`.

        This is the electrical potential relative to the leaves, for a unit current into the root.
        """
        potential = np.zeros(len(self.parent))
        potential[0] = 1 / self.below[0] if self.below[0] > 0 else np.inf
        carrying = self.below > 0
        inside = carrying & ~self.leaf
        potential[inside] = self.first_leaf[inside] / self.below[inside]
        for (
            level
        ) in self._levels:  # No current flows into a dead end: it lies at the potential of its parent.
            dead = level[~carrying[level] & (self.edge[level] > 0)]
            potential[dead] = potential[self.parent[dead]]
        return potential

    @property
    def visits(self) -> Array:
        """Expected number of visits (n,) of each node before the walk reaches the first leaf, 0 for leaves."""
        return np.where(self.leaf, 0.0, self.potential * self.weight)

    @property
    def visited(self) -> Array:
        """Probability (n,) that the walk visits each inner node before it reaches a leaf, 0 for leaves."""
        return np.where(self.leaf, 0.0, self.potential * np.where(self.leaf, 0.0, self.below + self.above))


def _series(first: Array, second: Array) -> Array:
    """Return the conductance of two conductances in series."""
    with np.errstate(invalid="ignore", divide="ignore"):
        joined: Array = np.where(np.isinf(second), first, first * (second / (first + second)))
    return np.where((first > 0) & (second > 0), joined, 0.0)


@validated
def walk_conductances(tree: InstanceOf[PrefixTree], values: VerifierLike) -> Conductances:
    """Return the value-guided random walk on a tree of prefixes as an electrical network.

    The edge between a prefix y and its parent has the conductance p(y) V(y). Here p(y) is the model's
    probability of the completion so far, and V(y) is the verifier's value of y.

    Args:
        tree: The tree of prefixes.
        values: Values V of the prefixes. The value of the root is not used.

    Returns:
        The network, whose nodes are the prefixes of `tree` in the same order.

    Raises:
        InputError: If no child of the root has a positive value, or a value is negative or not finite.
    """
    return build_network(tree, values, tree.log_probs)


def build_network(tree: PrefixTree, values: VerifierLike, log_probs: NDArray[np.float64]) -> Conductances:
    """Build the electrical network of a random walk on a tree of prefixes from given log-probabilities.

    The edge from a prefix y to its parent has the conductance exp(log_probs(y)) V(y).

    Args:
        tree: The tree of prefixes.
        values: Values V of the prefixes. The value of the root is not used.
        log_probs: Log-probabilities (n,) of the prefixes.

    Returns:
        The network, whose nodes are the prefixes of `tree` in the same order.

    Raises:
        InputError: If no child of the root has a positive value, or a value is negative or not finite.
    """
    judged = np.concatenate(([0.0], tree.values(values, np.arange(1, len(tree.prefixes)))))
    network = Conductances(tree.parent, np.exp(log_probs) * judged, tree.leaf)
    if not tree.leaf[0] and not network.weight[0] > 0:
        raise InputError("values", 0.0, "give a positive value to at least one continuation of the prompt")
    return network
