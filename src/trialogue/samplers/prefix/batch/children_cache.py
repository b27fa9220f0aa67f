"""Cache of the possible next tokens of each prefix, with their weights."""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

MOST_BYTES = 64 << 20
_MIN_CACHED_VOCAB = 512  # weights of smaller vocabularies are computed as fast as they are looked up


class Children(NamedTuple):
    """Possible next tokens of n prefixes, with their weights.

    Attributes:
        tokens: Next tokens (n, k) int64.
        log_weights: Log-weights (n, k) float64. -inf marks padding.
    """

    tokens: Tensor
    log_weights: Tensor


class ChildrenCache:
    """Cache of the next tokens that have positive weight, for recently visited prefixes.

    It saves time for verifiers that reject most tokens of a large vocabulary. Prefixes are identified by
    integer ids (nodes).

    Args:
        vocab_size: Number of tokens.
        most_bytes: Largest size in bytes (default: 64 MiB).
    """

    def __init__(self, vocab_size: int, most_bytes: int = MOST_BYTES) -> None:
        self._all, self._most_bytes, self._bytes = torch.arange(vocab_size), most_bytes, 0
        self._kept: OrderedDict[int, Children] = OrderedDict()

    def get(self, nodes: Tensor, weigh: Callable[[Tensor], Tensor]) -> Children:
        """Return the weighted next tokens of prefixes, computing those that are not cached.

        Args:
            nodes: Ids (n,) of the prefixes.
            weigh: Function that computes the log-weights (m, vocab) of all tokens after the prefixes
                `nodes[i]`, given indices i (m,).

        Returns:
            Tokens and log-weights (n, k). For at most 512 tokens, all tokens are returned and nothing is
            cached.
        """
        if len(self._all) <= _MIN_CACHED_VOCAB:
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
        """Renumber the stored nodes (prefixes) after nodes have been removed from the tree.

        Args:
            new: New id (nodes,) of each node, -1 for removed nodes.
        """
        moved = ((int(new[name]), children) for name, children in self._kept.items())
        self._kept = OrderedDict((name, children) for name, children in moved if name >= 0)
        self._bytes = sum(map(self._size, self._kept.values()))

    def _keep(self, name: int, log_weights: Tensor) -> Children:
        """Store the tokens with positive weight in `log_weights` (vocab,) as the next tokens of one prefix."""
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
