"""The distributions an oracle has answered with, remembered per prefix."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.tree import NodeTable, NodeTree, renumbered

MOST_BYTES = 96 << 20

Distributions = tuple[Tensor, ...]
"""Next-token distributions (n, vocab), and the same before truncation where that is something else."""


class Answers:
    """The distributions of up to `limit` nodes, in `most_bytes` bytes at most: of those that were asked for last.

    Returning to a remembered node costs a copy of its distribution instead of another pass through the output head,
    which for a large vocabulary is a good part of the model.
    """

    def __init__(self, tree: NodeTree, limit: int, most_bytes: int = MOST_BYTES) -> None:
        self._limit, self._most_bytes, self._free = limit, most_bytes, 0
        self._place_of = NodeTable(tree, -1, torch.int64)
        self._nodes = torch.empty(0, dtype=torch.int64)
        self._laws: Distributions = ()

    def of(self, nodes: Tensor, answer: Callable[[Tensor], Distributions]) -> Distributions:
        """Distributions of `nodes` (n,); `answer` gives those of the nodes at some indices (m,), and is asked once for
        each.
        """
        places = self._place_of.values[nodes]
        remembered = places >= 0
        if bool(remembered.any()):
            remembered[remembered.clone()] = self._nodes[places[remembered]] == nodes[remembered]
        if bool(remembered.all()):
            return tuple(distributions[places] for distributions in self._laws)
        missing = (~remembered).nonzero()[:, 0]
        first, inverse = (
            torch.from_numpy(index)
            for index in np.unique(nodes[missing].numpy(), return_index=True, return_inverse=True)[1:]
        )
        once = len(first) == len(missing)
        answered = answer(missing if once else missing[first])
        if once and len(missing) == len(nodes):
            self._keep(nodes, answered)
            return answered
        # What is remembered is read first: keeping the others may make it be forgotten.
        recalled = remembered.nonzero()[:, 0]
        whole = []
        for number, distributions in enumerate(answered):
            joined = distributions.new_empty(len(nodes), distributions.shape[1])
            joined[missing] = distributions if once else distributions[inverse]
            if len(recalled):
                joined[recalled] = self._laws[number][places[recalled]]
            whole.append(joined)
        self._keep(nodes[missing if once else missing[first]], answered)
        return tuple(whole)

    def renumber(self, new: Tensor) -> None:
        """Nodes have `new` ids (nodes,), -1 where they were forgotten."""
        self._nodes = renumbered(self._nodes, new)

    def _keep(self, nodes: Tensor, answered: Distributions) -> None:
        if not self._laws:
            size = sum(distributions.shape[1] * distributions.element_size() for distributions in answered)
            room = max(1, min(self._limit, self._most_bytes // size))
            # Memory is only taken as places are written, and numpy asks for it in large pages: a quarter of the time.
            self._laws = tuple(
                torch.from_numpy(np.empty((room, distributions.shape[1]), dtype=distributions.numpy().dtype))
                for distributions in answered
            )
            self._nodes = torch.full((room,), -1)
        nodes, answered = (
            nodes[-len(self._nodes) :],
            tuple(distributions[-len(self._nodes) :] for distributions in answered),
        )
        places = (self._free + torch.arange(len(nodes))) % len(self._nodes)
        self._free = (self._free + len(nodes)) % len(self._nodes)
        self._place_of.values[nodes] = places
        self._nodes[places] = nodes
        for kept, distributions in zip(self._laws, answered, strict=True):
            kept[places] = distributions
