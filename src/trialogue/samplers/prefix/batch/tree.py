"""Tree of all prefixes that a run has visited, with an integer id and cached values for each prefix."""

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
    """Root of a tree of prefixes: a prompt and the settings with which it is completed.

    Attributes:
        prompt: Token ids of the prompt.
        settings_id: Identifier of the settings of the prompt, such as verifier and stop condition (default: 0).
    """

    prompt: tuple[int, ...]
    settings_id: int = 0


class NodeTree:
    """Tree of prefixes, in which each prefix has an integer id (node): 0, 1, 2, ...

    Each distinct pair of a prompt and a `settings_id` (an integer that identifies verifier and stop
    condition) has its own root. Results that depend on these settings can therefore be stored by node.

    Args:
        vocab_size: Number of tokens.
    """

    def __init__(self, vocab_size: int) -> None:
        self._vocab = vocab_size
        self._roots: dict[Root, int] = {}
        self._keys = np.full(4 * _FIRST_NODES, -1, dtype=np.int64)
        self._ids = np.empty_like(self._keys)
        self.size = 0
        self.tables: list[NodeTable] = []
        self._forget_from = _FIRST_NODES  # number of nodes at which `forget` removes nodes
        self._shrink_from = 0  # number of nodes at which `shrink` removes nodes

    def paths(
        self, tokens: Tensor, lengths: Tensor, start: Tensor, settings_id: Tensor | None = None
    ) -> Tensor:
        """Return the node ids of all prefixes of some sequences. Missing nodes are inserted.

        Args:
            tokens: Token ids (n, capacity).
            lengths: Lengths (n,) of prompt and completion.
            start: Lengths (n,) of the prompts.
            settings_id: Integer (n,) that identifies the settings of each sequence (default: 0).

        Returns:
            Node ids (n, capacity + 1). Column j belongs to the first j tokens, and the first column holds the roots.
        """
        path = torch.zeros(tokens.shape[0], tokens.shape[1] + 1, dtype=torch.int64)
        if bool(start.any()) or settings_id is not None:
            settings_ids = [0] * len(start) if settings_id is None else settings_id.tolist()
            prompts = zip(tokens.tolist(), start.tolist(), settings_ids, strict=True)
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
        prompt_node: Tensor,
        held: Tensor,
        kept: Tensor,
        appended: Tensor,
    ) -> tuple[Tensor, Tensor, int]:
        """Shorten sequences, append at most one token to each, and return their new lengths.

        Args:
            tokens: Token ids (rows, capacity). Modified in place.
            path: Id of every prefix (rows, capacity + 1) of each row. Modified in place.
            limit: Lengths (rows,) at which rows are complete.
            eos: The end-of-sequence token, if there is one. A row that ends in it is complete.
            prompt_node: Id (rows,) of a prompt that is continued although it ends with `eos`, -1 for none.
            held: Current lengths (rows,).
            kept: Number (rows,) of tokens to keep.
            appended: Token (rows,) to append, -1 for none.

        Returns:
            The new lengths (rows,), whether each row (rows,) is complete, and the number of complete rows.

        Raises:
            InputError: If a row would keep more tokens than it holds, exceed its capacity or append a token
                outside of the vocabulary.
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
            prompt_node.numpy(),
            held.numpy(),
            kept.numpy(),
            appended.numpy(),
            lengths.numpy(),
            complete.numpy(),
        )
        if size < 0:
            hint = f"keep at most the {int(held[completed])} tokens of row {completed}, append tokens below "
            hint += f"{self._vocab} only, and do not exceed {tokens.shape[1]} tokens"
            raise InputError("moves", (int(kept[completed]), int(appended[completed])), hint)
        self.size = size
        return lengths, complete, completed

    def forget(self, roots: Iterable[Root]) -> Tensor | None:
        """Mark `roots` and their descendants for removal. They are removed once the tree has grown enough.

        Args:
            roots: Roots that are not used again. Unknown roots are ignored.

        Returns:
            The new id (nodes,) of each node, -1 for removed nodes; or None if the ids have not changed.
        """
        for root in roots:
            self._roots.pop(root, None)
        if self.size < self._forget_from:
            return None
        kept = np.zeros(self.size, dtype=np.bool_)
        kept[list(self._roots.values())] = True
        kernels.mark_below(self._keys, self._ids, self._vocab, kept)
        new = self._keep(kept)
        self._forget_from = max(_FIRST_NODES, 2 * self.size)
        return new

    def shrink(self, most: int, needed: Tensor) -> Tensor | None:
        """Remove about half of the nodes if there are more than `most`.

        Leaves are removed first, the oldest before newer ones, then nodes that have become leaves.

        Args:
            most: Largest number of nodes.
            needed: Node ids (n,) to keep, in addition to the roots.

        Returns:
            The new id (nodes,) of each node, -1 for removed nodes; or None if the ids have not changed.
        """
        if self.size <= max(most, self._shrink_from):
            return None
        kept = np.zeros(self.size, dtype=np.bool_)
        kept[list(self._roots.values())] = True
        kept[needed.numpy()] = True
        droppable = (~kept).nonzero()[0]
        heights = kernels.heights(self._keys, self._ids, self._vocab, self.size)
        order = droppable[np.argsort(heights[droppable], kind="stable")]
        kept[order[self.size - most // 2 :]] = True
        new = self._keep(kept)
        # If more nodes are needed than `most`, this prevents a search after every step.
        self._shrink_from = 2 * self.size
        return new

    def _keep(self, kept: NDArray[np.bool_]) -> Tensor:
        """Remove all nodes that are not marked in `kept` (nodes,) bool.

        With each node, all of its ancestors must be marked. Returns the new ids (nodes,), -1 for removed nodes.
        """
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


def renumber_nodes(nodes: Tensor, new: Tensor) -> Tensor:
    """Convert node ids after nodes have been removed from a tree.

    Args:
        nodes: Node ids of any shape. -1 is unchanged.
        new: New id (nodes,) of each node, -1 for removed nodes.

    Returns:
        The new ids, of the shape of `nodes`.
    """
    return torch.where(nodes < 0, -1, new[nodes.clamp_min(0)])


class NodeTable:
    """Tensor with one number for each node (prefix) of a tree, which grows with the tree.

    Args:
        tree: The tree.
        default: Value of nodes that have not been written.
        dtype: The dtype of the values.
    """

    def __init__(self, tree: NodeTree, default: float, dtype: torch.dtype) -> None:
        self._tree, self._default = tree, default
        self._values = torch.full((_FIRST_NODES,), default, dtype=dtype)
        tree.tables.append(self)

    @property
    def values(self) -> Tensor:
        """Values by node id, with at least as many entries as the tree has nodes."""
        if len(self._values) < self._tree.size:
            more = max(self._tree.size, 2 * len(self._values)) - len(self._values)
            self._values = torch.cat((self._values, self._values.new_full((more,), self._default)))
        return self._values

    def keep(self, kept: Tensor) -> None:
        """Remove the values of all nodes except those marked in `kept` (nodes,) bool, whose ids become consecutive."""
        self._values = self.values[: len(kept)][kept]


class FeatureCache:
    """Cache of the model's feature vectors for recently evaluated prefixes.

    Next-token distributions and hidden states are computed from the features. Prefixes are identified by
    integer ids (nodes).

    Args:
        tree: The tree of the nodes.
        limit: Largest number of nodes.
        most_bytes: Largest size in bytes (default: 256 MiB).

    Attributes:
        nodes: Prefix whose features are stored at each place of the cache, -1 for none.
        place_of: Place at which the features of each prefix were last stored. They may have been overwritten.
        free: The place that is overwritten next.
    """

    def __init__(self, tree: NodeTree, limit: int, most_bytes: int = MOST_BYTES) -> None:
        self.nodes, self.free, self._limit = np.empty(0, dtype=np.int64), 0, limit
        self.place_of = NodeTable(tree, -1, torch.int64)
        self._most_bytes = most_bytes
        self._features: Tensor | None = None

    def renumber(self, new: Tensor) -> None:
        """Renumber the stored nodes (prefixes) after nodes have been removed from the tree.

        Args:
            new: New id (nodes,) of each node, -1 for removed nodes.
        """
        self.nodes = renumber_nodes(torch.from_numpy(self.nodes), new).numpy()

    @property
    def is_empty(self) -> bool:
        """Whether no features have been stored yet, so that their number per node is unknown."""
        return self._features is None

    def contains(self, nodes: Tensor) -> Tensor:
        """Return whether the features of `nodes` (n,) are stored, (n,) bool."""
        places = self.place_of.values[nodes]
        if self.is_empty:
            return places >= 0
        return (places >= 0) & (torch.from_numpy(self.nodes)[places] == nodes)

    def features(self, nodes: Tensor) -> Tensor:
        """Return the stored features (n, features) of `nodes` (n,), all of which must be in the cache."""
        assert self._features is not None
        return self._features[self.place_of.values[nodes].to(self._features.device)]

    def admit(self, features: Tensor) -> None:
        """Allocate memory in the first call, when the number of features becomes known.

        Args:
            features: Features (n, features).
        """
        if self._features is None:
            places = max(1, self._most_bytes // max(1, features.shape[1] * features.element_size()))
            self.nodes = np.full(min(places, self._limit), -1, dtype=np.int64)
            self._features = features.new_empty(0, features.shape[1])

    def store(self, places: Tensor, kept: int, features: Tensor) -> None:
        """Store feature vectors, allocating more memory if needed.

        Args:
            places: Place (n,) in the cache at which each feature vector is stored, -1 for vectors that are not stored.
            kept: Number of vectors that are stored.
            features: Feature vectors (n, features).
        """
        assert self._features is not None
        # Places are assigned in order, so memory can be allocated gradually.
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
