"""Cache of the model's next-token distributions by prefix."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.tree import NodeTable, NodeTree, renumber_nodes

MOST_BYTES = 96 << 20

Distributions = tuple[Tensor, ...]
"""Next-token distributions (n, vocab). If truncation changes them, the untruncated ones follow."""


class DistributionCache:
    """Cache of the most recently computed next-token distributions, by prefix id (node).

    It saves the output head of the model, which is expensive if the vocabulary is large.

    Args:
        tree: The tree of the nodes.
        limit: Largest number of nodes.
        most_bytes: Largest size in bytes (default: 96 MiB).
    """

    def __init__(self, tree: NodeTree, limit: int, most_bytes: int = MOST_BYTES) -> None:
        self._limit, self._most_bytes, self._free = limit, most_bytes, 0
        self._place_of = NodeTable(tree, -1, torch.int64)
        self._nodes = torch.empty(0, dtype=torch.int64)
        self._distributions: Distributions = ()

    def get(self, nodes: Tensor, compute: Callable[[Tensor], Distributions]) -> Distributions:
        """Return the next-token distributions of prefixes, computing and storing those that are not cached.

        Args:
            nodes: Ids (n,) of the prefixes.
            compute: Function from indices (m,) into `nodes` to their distributions. It is called once, with
                one index for each distinct prefix that is not cached.

        Returns:
            One or two tensors (n, vocab), as `compute` returns them.
        """
        places = self._place_of.values[nodes]
        is_cached = places >= 0
        if bool(is_cached.any()):
            is_cached[is_cached.clone()] = self._nodes[places[is_cached]] == nodes[is_cached]
        if bool(is_cached.all()):
            return tuple(distributions[places] for distributions in self._distributions)
        missing = (~is_cached).nonzero()[:, 0]
        first, inverse = (
            torch.from_numpy(index)
            for index in np.unique(nodes[missing].numpy(), return_index=True, return_inverse=True)[1:]
        )
        once = len(first) == len(missing)
        computed = compute(missing if once else missing[first])
        if once and len(missing) == len(nodes):
            self._keep(nodes, computed)
            return computed
        # Cached distributions are read first, because storing the others may overwrite them.
        cached = is_cached.nonzero()[:, 0]
        all_distributions = []
        for number, distributions in enumerate(computed):
            joined = distributions.new_empty(len(nodes), distributions.shape[1])
            joined[missing] = distributions if once else distributions[inverse]
            if len(cached):
                joined[cached] = self._distributions[number][places[cached]]
            all_distributions.append(joined)
        self._keep(nodes[missing if once else missing[first]], computed)
        return tuple(all_distributions)

    def renumber(self, new: Tensor) -> None:
        """Renumber the stored nodes (prefixes) after nodes have been removed from the tree.

        Args:
            new: New id (nodes,) of each node, -1 for removed nodes.
        """
        self._nodes = renumber_nodes(self._nodes, new)

    def _keep(self, nodes: Tensor, computed: Distributions) -> None:
        if not self._distributions:
            size = sum(distributions.shape[1] * distributions.element_size() for distributions in computed)
            room = max(1, min(self._limit, self._most_bytes // size))
            # The memory is allocated lazily. NumPy requests huge pages, which takes a quarter of the time.
            self._distributions = tuple(
                torch.from_numpy(np.empty((room, distributions.shape[1]), dtype=distributions.numpy().dtype))
                for distributions in computed
            )
            self._nodes = torch.full((room,), -1)
        nodes, computed = (
            nodes[-len(self._nodes) :],
            tuple(distributions[-len(self._nodes) :] for distributions in computed),
        )
        places = (self._free + torch.arange(len(nodes))) % len(self._nodes)
        self._free = (self._free + len(nodes)) % len(self._nodes)
        self._place_of.values[nodes] = places
        self._nodes[places] = nodes
        for kept, distributions in zip(self._distributions, computed, strict=True):
            kept[places] = distributions
