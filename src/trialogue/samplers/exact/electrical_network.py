"""Random walks on a tree as electrical networks: where a walk from the root first meets a leaf, and what it visits.

The walk leaves a node along each of its edges in proportion to the conductance of the edge. All of it follows from
conductances in series and in parallel, without a linear system and without subtraction where digits would be lost.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trialogue.arrays import real_tensor, whole_tensor
from trialogue.errors import InputError
from trialogue.samplers.exact.elimination import SMALLEST
from trialogue.samplers.exact.prefix_trees import PrefixTree
from trialogue.validation import InstanceOf, validated
from trialogue.verifiers.functions.function import VerifierLike

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Conductances:
    """A tree whose nodes come with parents before children; the first is the root.

    `parent` (n,) int64 is -1 of the root. `edge` (n,) float64 is the conductance of the edge to the parent, which the
    root does not have. `leaf` (n,) bool says where the walk ends. Nodes may be dead ends: neither leaves nor above one.
    """

    parent: NDArray[np.int64]
    edge: Array
    leaf: NDArray[np.bool_]

    def __post_init__(self) -> None:
        parent = whole_tensor("parent", self.parent, "give the place (n,) of the parent of each node").numpy()
        below = parent[1:] if parent.ndim == 1 else parent
        if (
            parent.ndim != 1
            or len(parent) == 0
            or parent[0] != -1
            or not bool(((below >= 0) & (below < np.arange(1, len(below) + 1))).all())
        ):
            raise InputError(
                "parent", self.parent, "list the root first, and every parent before its children"
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
        """Nodes by depth, but for the root."""
        depth = np.zeros(len(self.parent), dtype=np.int64)
        places = np.arange(1, len(self.parent))
        # In rounds: the depth of a node is right once that of its parent is.
        while True:
            deeper = depth[self.parent[places]] + 1
            if bool((depth[places] == deeper).all()):
                break
            depth[places] = deeper
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(depth))[:-1])[1:]

    def _summed(self, values: Array, over: NDArray[np.int64] | slice = slice(1, None)) -> Array:
        """The sum of `values` (n,) over the children of each node (n,), those at `over`."""
        places = np.arange(len(self.parent))[over]
        summed = np.zeros(len(self.parent))
        np.add.at(summed, self.parent[places], values[places])
        return summed

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """Which nodes (n,) the walk can come to: all edges between them and the root conduct."""
        reached = np.zeros(len(self.parent), dtype=np.bool_)
        reached[0] = True
        for level in self._levels:
            reached[level] = reached[self.parent[level]] & (self.edge[level] > 0)
        return reached

    @cached_property
    def weight(self) -> Array:
        """The stationary mass of each node (n,), unnormalised: the sum of the conductances of its edges.

        Nodes that the walk cannot come to have none, whatever their edges conduct.
        """
        edge = np.where(self.reached, self.edge, 0.0)
        edge[0] = 0.0
        return edge + self._summed(edge)

    @cached_property
    def _ranks(self) -> list[NDArray[np.int64]]:
        """The first child of every node, then the second of those that have two, and so on."""
        order = 1 + np.argsort(self.parent[1:], kind="stable")
        parents = self.parent[order]
        rank = np.arange(len(order)) - np.searchsorted(parents, parents)
        by_rank = np.argsort(rank, kind="stable")
        return np.split(order[by_rank], np.cumsum(np.bincount(rank))[:-1]) if len(order) else []

    def _summed_siblings(self, values: Array) -> Array:
        """The sum of `values` (n,) over the siblings of each node (n,), the node itself left out.

        Siblings before and after a node are summed apart: subtracting its own value from the sum would lose digits.
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
        """The conductance from each node (n,) to the leaves below it: infinite of leaves, 0 of dead ends."""
        below = np.where(self.leaf, np.inf, 0.0)
        for level in reversed(self._levels):
            below += np.where(self.leaf, 0.0, self._summed(_series(self.edge, below), level))
        return below

    @cached_property
    def through(self) -> Array:
        """The conductance from the parent of each node (n,) through the node to the leaves below it."""
        return _series(self.edge, self.below)

    @cached_property
    def above(self) -> Array:
        """The conductance from each node (n,) to leaves through its parent."""
        above = np.zeros(len(self.parent))
        others = self._summed_siblings(self.through)
        for level in self._levels:
            above[level] = _series(self.edge[level], above[self.parent[level]] + others[level])
        return above

    @cached_property
    def first_leaf(self) -> Array:
        """The probability of each node (n,) to lie on the path to the first leaf: of a leaf, to be that.

        Raises:
            InputError: If the conductance from the root to the leaves is below 1e-300.
        """
        if not self.below[0] >= SMALLEST:
            hint = (
                f"no leaf is reachable with a conductance of at least {SMALLEST:g}. "
                "Assign positive values along a path to a leaf."
            )
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
        """The probability that a walk that only goes down passes each node (n,); nodes without a way on keep theirs."""
        descent = np.zeros(len(self.parent))
        descent[0] = 1.0
        offered = self._summed(self.edge)
        for level in self._levels:
            parent = self.parent[level]
            share = np.zeros(len(level))
            np.divide(self.edge[level], offered[parent], out=share, where=offered[parent] > 0)
            descent[level] = descent[parent] * share
        return descent

    @cached_property
    def potential(self) -> Array:
        """The potential (n,) over the leaves, where a unit of current enters at the root: E[visits] / `weight`."""
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
        """The expected number of visits of each node (n,) before the first leaf, at which there are none."""
        return np.where(self.leaf, 0.0, self.potential * self.weight)

    @property
    def visited(self) -> Array:
        """The probability that each node (n,) that is no leaf is visited before the first leaf; 0 of leaves."""
        return np.where(self.leaf, 0.0, self.potential * np.where(self.leaf, 0.0, self.below + self.above))


def _series(first: Array, second: Array) -> Array:
    """The conductance of two in series."""
    with np.errstate(invalid="ignore", divide="ignore"):
        joined: Array = np.where(np.isinf(second), first, first * (second / (first + second)))
    return np.where((first > 0) & (second > 0), joined, 0.0)


@validated
def walk_conductances(tree: InstanceOf[PrefixTree], values: VerifierLike) -> Conductances:
    """The walk on `tree` that `values` guide, as a network; the value of the root plays no part.

    Raises `InputError` where no child of the root has a positive value, and for values that are not finite and
    non-negative.
    """
    return network_of(tree, values, tree.log_probs)


def network_of(tree: PrefixTree, values: VerifierLike, log_probs: NDArray[np.float64]) -> Conductances:
    """The network whose edge to a prefix y conducts exp(`log_probs`) V(y)."""
    judged = np.concatenate(([0.0], tree.values(values, np.arange(1, len(tree.prefixes)))))
    network = Conductances(tree.parent, np.exp(log_probs) * judged, tree.leaf)
    if not tree.leaf[0] and not network.weight[0] > 0:
        raise InputError(
            "values", 0.0, "no continuation of the prompt has a positive value: the walk cannot move"
        )
    return network
