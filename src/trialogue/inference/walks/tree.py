"""The tree of prefixes a run has visited: one id per prefix, and what is remembered of each."""

import torch
from torch import Tensor

_FIRST_NODES = 1024


class PrefixTree:
    """Dense ids for prefixes.

    Every distinct prompt has a root of its own, so that an id tells prompt and completion apart and whether a
    sequence is complete is a property of its node.
    """

    def __init__(self, vocab_size: int) -> None:
        self._vocab = vocab_size
        self._roots: dict[tuple[int, ...], int] = {}
        self._children: dict[int, int] = {}
        self.size = 0

    def root(self, prompt: tuple[int, ...]) -> int:
        """Return the id of the empty prefix of sequences that start from `prompt`."""
        node = self._roots.setdefault(prompt, self.size)
        self.size += node == self.size
        return node

    def children(self, nodes: Tensor, tokens: Tensor) -> Tensor:
        """Ids (n,) of the children of `nodes` (n,) along `tokens` (n,)."""
        keys: list[int] = (nodes * self._vocab + tokens).tolist()
        children = self._children
        ids = [children.get(key, -1) for key in keys]
        if -1 in ids:
            size = self.size
            for index, node in enumerate(ids):
                if node < 0:
                    ids[index] = node = children.setdefault(keys[index], size)
                    size += node == size
            self.size = size
        return torch.tensor(ids, dtype=torch.int64)


class NodeTable:
    """One number per node, growing with the tree; nodes never written hold `default`."""

    def __init__(self, tree: PrefixTree, default: float, dtype: torch.dtype) -> None:
        self._tree, self._default = tree, default
        self._values = torch.full((_FIRST_NODES,), default, dtype=dtype)

    @property
    def values(self) -> Tensor:
        """The numbers by node id, long enough for every node of the tree."""
        if len(self._values) < self._tree.size:
            more = max(self._tree.size, 2 * len(self._values)) - len(self._values)
            self._values = torch.cat((self._values, self._values.new_full((more,), self._default)))
        return self._values


class Memory:
    """The features of the nodes computed last, up to `limit` of them; the oldest node makes room first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._nodes = torch.full((limit,), -1)
        self._features: Tensor | None = None

    def find(self, nodes: Tensor) -> Tensor:
        """Which of `nodes` (n,) are remembered."""
        return self._nodes[nodes % self._limit] == nodes

    def features(self, nodes: Tensor) -> Tensor:
        """Features (n, features) of remembered nodes."""
        assert self._features is not None
        return self._features[nodes % self._limit]

    def store(self, nodes: Tensor, features: Tensor) -> None:
        """Remember `features` (n, features) of `nodes` (n,)."""
        if self._features is None:
            self._features = features.new_empty(self._limit, features.shape[1])
        slots = nodes % self._limit
        self._nodes[slots] = nodes
        # Of nodes that share a slot only the one that kept it may leave its features there.
        kept = self._nodes[slots] == nodes
        if not bool(kept.all()):
            slots, features = slots[kept], features[kept]
        self._features[slots] = features
