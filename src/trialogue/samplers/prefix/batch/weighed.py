"""The children of nodes, weighed by a sampler, remembered per node."""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

MOST_BYTES = 64 << 20
_NARROW = 512  # of fewer tokens the weights are worked out as fast as they are found again


class Children(NamedTuple):
    """Children of n nodes that a sampler may go to: `tokens` (n, k) int64, `log_weights` (n, k) float64, -inf for
    none.
    """

    tokens: Tensor
    log_weights: Tensor


class WeighedChildren:
    """The children of nodes that weigh anything, in `most_bytes` bytes at most: those of the nodes met last.

    Of a wide vocabulary most tokens weigh nothing under a rule, and what it takes to find the others is a good part of
    a forward pass: at a remembered node only they are looked at.
    """

    def __init__(self, vocab_size: int, most_bytes: int = MOST_BYTES) -> None:
        self._all, self._most_bytes, self._bytes = torch.arange(vocab_size), most_bytes, 0
        self._kept: OrderedDict[int, Children] = OrderedDict()

    def of(self, nodes: Tensor, weigh: Callable[[Tensor], Tensor]) -> Children:
        """Children of `nodes` (n,); `weigh` gives the log-weights (m, vocab) of all tokens at some of them (m,)."""
        if len(self._all) <= _NARROW:
            every = torch.arange(len(nodes))
            return Children(self._all.expand(len(nodes), -1), weigh(every))
        names = nodes.tolist()
        found = {name: self._kept[name] for name in names if name in self._kept}
        first = {name: place for place, name in reversed(list(enumerate(names))) if name not in found}
        if first:
            places = torch.tensor(list(first.values()))
            for name, log_weights in zip(first, weigh(places), strict=True):
                found[name] = self._keep(name, log_weights)
        for name in found:
            if name in self._kept:
                self._kept.move_to_end(name)
        if len(names) == 1:
            tokens, log_weights = found[names[0]]
            return Children(tokens[None], log_weights[None])
        of_each = [found[name] for name in names]
        return Children(
            pad_sequence([children.tokens for children in of_each], batch_first=True),
            pad_sequence([children.log_weights for children in of_each], True, -torch.inf),
        )

    def renumber(self, new: Tensor) -> None:
        """Nodes have `new` ids (nodes,), -1 where they were forgotten."""
        moved = ((int(new[name]), children) for name, children in self._kept.items())
        self._kept = OrderedDict((name, children) for name, children in moved if name >= 0)
        self._bytes = sum(map(self._size, self._kept.values()))

    def _keep(self, name: int, log_weights: Tensor) -> Children:
        """Remember the children of a node by the log-weights (vocab,) of all tokens."""
        tokens = (log_weights > -torch.inf).nonzero()[:, 0]
        if 2 * len(tokens) > len(self._all):
            children = Children(self._all, log_weights.clone())
        else:
            children = Children(tokens, log_weights[tokens])
        self._kept[name] = children
        self._bytes += self._size(children)
        while self._bytes > self._most_bytes:
            self._bytes -= self._size(self._kept.popitem(last=False)[1])
        return children

    def _size(self, children: Children) -> int:
        tokens, log_weights = children
        own = 0 if tokens is self._all else tokens.numel() * tokens.element_size()
        return own + log_weights.numel() * log_weights.element_size()
