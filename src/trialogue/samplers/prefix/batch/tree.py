"""The tree of prefixes a run has visited: one id per prefix, and what is remembered of each."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.errors import InputError
from trialogue.samplers.prefix.batch import kernels

_FIRST_NODES = 1024
_FIRST_FEATURES = 64
MOST_BYTES = 1 << 28


class Root(NamedTuple):
    """What the nodes of a tree lie below: a prompt as token ids, and which of the run's rules holds for it."""

    prompt: tuple[int, ...]
    rule: int = 0


class NodeTree:
    """Dense ids for prefixes.

    Every distinct prompt has a root of its own under each rule, so that an id tells prompt and completion apart, and
    whether a sequence is complete, and what its verifier says, are properties of its node.
    """

    def __init__(self, vocab_size: int) -> None:
        self._vocab = vocab_size
        self._roots: dict[Root, int] = {}
        self._keys = np.full(4 * _FIRST_NODES, -1, dtype=np.int64)
        self._ids = np.empty_like(self._keys)
        self.size = 0
        self.tables: list[NodeTable] = []
        self._most = _FIRST_NODES  # nodes before it is worth looking for what can be forgotten
        self._least = 0  # the same where there is too little room

    def paths(self, tokens: Tensor, lengths: Tensor, start: Tensor, rule: Tensor | None = None) -> Tensor:
        """Nodes (n, capacity + 1) of every prefix of `tokens` (n, capacity) up to `lengths` (n,).

        The first `start` (n,) tokens of a row are its prompt, whose root comes first; `rule` (n,) is which rule it is
        under, by default 0.
        """
        path = torch.zeros(tokens.shape[0], tokens.shape[1] + 1, dtype=torch.int64)
        if bool(start.any()) or rule is not None:
            rules = [0] * len(start) if rule is None else rule.tolist()
            prompts = zip(tokens.tolist(), start.tolist(), rules, strict=True)
            roots = [self._root(Root(tuple(row[:length]), under)) for row, length, under in prompts]
            path[:, 0] = torch.tensor(roots, dtype=torch.int64)
        else:
            path[:, 0] = self._root(Root(()))
        self._make_room(int(lengths.sum()))
        self.size = kernels.descend(
            self._keys, self._ids, self._vocab, self.size, tokens.numpy(), lengths.numpy(), path.numpy()
        )
        return path

    def _root(self, root: Root) -> int:
        node = self._roots.setdefault(root, self.size)
        self.size += node == self.size
        return node

    def advance(
        self,
        tokens: Tensor,
        path: Tensor,
        limit: Tensor,
        eos: int | None,
        going_on: Tensor,
        held: Tensor,
        kept: Tensor,
        appended: Tensor,
    ) -> tuple[Tensor, Tensor, int]:
        """Cut rows, which hold `held` (rows,) tokens, to `kept` (rows,) and append `appended` (rows,), -1 for none.

        A row at its node `going_on` (rows,), -1 for none, is not complete for ending in `eos`. Writes to `tokens`
        (rows, capacity) and to their nodes `path` (rows, capacity + 1); returns the new lengths and which rows are
        complete, both (rows,), and how many are.
        """
        self._make_room(len(kept))
        lengths, complete = torch.empty_like(kept), torch.empty(len(kept), dtype=torch.bool)
        size, completed = kernels.advance(
            self._keys,
            self._ids,
            self._vocab,
            self.size,
            tokens.numpy(),
            path.numpy(),
            limit.numpy(),
            -1 if eos is None else eos,
            going_on.numpy(),
            held.numpy(),
            kept.numpy(),
            appended.numpy(),
            lengths.numpy(),
            complete.numpy(),
        )
        if size < 0:
            hint = f"row {completed} holds {int(held[completed])} tokens of at most {tokens.shape[1]}: keep no more, "
            hint += f"and append a token below {self._vocab} only where there is room"
            raise InputError("moves", (int(kept[completed]), int(appended[completed])), hint)
        self.size = size
        return lengths, complete, completed

    def forget(self, roots: Iterable[Root]) -> Tensor | None:
        """Forget `roots`, as far as they are there, and all below them, sooner or later; nobody asks for them again.

        Where it happens, ids are given out anew: returns the new one (nodes,) of every node, -1 for the forgotten.
        """
        for root in roots:
            self._roots.pop(root, None)
        if self.size < self._most:
            return None
        kept = np.zeros(self.size, dtype=np.bool_)
        kept[list(self._roots.values())] = True
        kernels.mark_below(self._keys, self._ids, self._vocab, kept)
        new = self._keep(kept)
        self._most = max(_FIRST_NODES, 2 * self.size)
        return new

    def shrink(self, most: int, needed: Tensor) -> Tensor | None:
        """Forget about half of the nodes where there are more than `most`, but neither roots nor those `needed` (n,).

        Those without children go first, of these the oldest, then those that have become so. Ids are given out anew as
        by `forget`.
        """
        if self.size <= max(most, self._least):
            return None
        kept = np.zeros(self.size, dtype=np.bool_)
        kept[list(self._roots.values())] = True
        kept[needed.numpy()] = True
        droppable = (~kept).nonzero()[0]
        heights = kernels.heights(self._keys, self._ids, self._vocab, self.size)
        order = droppable[np.argsort(heights[droppable], kind="stable")]
        kept[order[self.size - most // 2 :]] = True
        new = self._keep(kept)
        # What is needed may be more than there is room for: looking for what to forget must not become the work.
        self._least = 2 * self.size
        return new

    def _keep(self, kept: NDArray[np.bool_]) -> Tensor:
        """Keep the nodes that are `kept` (nodes,), with all their ancestors, under new ids (nodes,)."""
        new = np.where(kept, kept.cumsum() - 1, -1)
        for table in self.tables:
            table.keep(torch.from_numpy(kept))
        self._roots = {root: int(new[node]) for root, node in self._roots.items()}
        self.size = int(kept.sum())
        keys = np.full(1 << (8 * max(_FIRST_NODES, self.size)).bit_length(), -1, dtype=np.int64)
        ids = np.empty_like(keys)
        kernels.rehash_renumbered(self._keys, self._ids, self._vocab, new, keys, ids)
        self._keys, self._ids = keys, ids
        return torch.from_numpy(new)

    def _make_room(self, more: int) -> None:
        if 2 * (self.size + more) > len(self._keys):
            wider = np.full(1 << (4 * (self.size + more)).bit_length(), -1, dtype=np.int64)
            ids = np.empty_like(wider)
            kernels.rehash(self._keys, self._ids, wider, ids)
            self._keys, self._ids = wider, ids


def renumbered(nodes: Tensor, new: Tensor) -> Tensor:
    """`nodes`, of any shape, by their `new` ids; -1 stays what it is."""
    return torch.where(nodes < 0, -1, new[nodes.clamp_min(0)])


class NodeTable:
    """One number per node, growing with the tree; nodes never written hold `default`."""

    def __init__(self, tree: NodeTree, default: float, dtype: torch.dtype) -> None:
        self._tree, self._default = tree, default
        self._values = torch.full((_FIRST_NODES,), default, dtype=dtype)
        tree.tables.append(self)

    @property
    def values(self) -> Tensor:
        """The numbers by node id, long enough for every node of the tree."""
        if len(self._values) < self._tree.size:
            more = max(self._tree.size, 2 * len(self._values)) - len(self._values)
            self._values = torch.cat((self._values, self._values.new_full((more,), self._default)))
        return self._values

    def keep(self, kept: Tensor) -> None:
        """Keep the numbers of the nodes that are `kept` (nodes,)."""
        self._values = self.values[: len(kept)][kept]


class Memory:
    """The features of up to `limit` nodes, in `most_bytes` bytes at most: of those that were evaluated last.

    `nodes` says which node each place holds, `place_of` where a node was last, `free` the place that is given away
    next.
    """

    def __init__(self, tree: NodeTree, limit: int, most_bytes: int = MOST_BYTES) -> None:
        self.nodes, self.free, self._limit = np.empty(0, dtype=np.int64), 0, limit
        self.place_of = NodeTable(tree, -1, torch.int64)
        self._most_bytes = most_bytes
        self._features: Tensor | None = None

    def renumber(self, new: Tensor) -> None:
        """Nodes have `new` ids (nodes,), -1 where they were forgotten."""
        self.nodes = renumbered(torch.from_numpy(self.nodes), new).numpy()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever stored, so that not even the number of features is known."""
        return self._features is None

    def features(self, nodes: Tensor) -> Tensor:
        """Features (n, features) of remembered nodes."""
        assert self._features is not None
        return self._features[self.place_of.values[nodes].to(self._features.device)]

    def admit(self, features: Tensor) -> None:
        """Make sure that what is like `features` (n, features) has places: as many as the bytes allow."""
        if self._features is None:
            places = max(1, self._most_bytes // max(1, features.shape[1] * features.element_size()))
            self.nodes = np.full(min(places, self._limit), -1, dtype=np.int64)
            self._features = features.new_empty(0, features.shape[1])

    def store(self, places: Tensor, kept: int, features: Tensor) -> None:
        """Keep `features` (n, features) at `places` (n,); `kept` of them have a place, -1 marks the others."""
        assert self._features is not None
        # Places are given away in order, so that they are needed as nodes are evaluated.
        needed, most = int(places.max()) + 1, len(self.nodes)
        if len(self._features) < needed:
            room = min(max(2 * needed, _FIRST_FEATURES), most)
            wider = features.new_empty(room, features.shape[1])
            wider[: len(self._features)] = self._features
            self._features = wider
        if kept < places.numel():
            placed = (places >= 0).nonzero()[:, 0]
            places, features = places[placed], features[placed.to(features.device)]
        self._features.index_copy_(0, places.to(features.device), features)
