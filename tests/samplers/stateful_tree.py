"""An exact oracle that stores tokens per row and position, in the same way as a key-value cache."""

from collections.abc import Sequence

import torch
from torch import Tensor

from trialogue.testing.trees import RandomTree

EMPTY, START = -9, -1


class StoredTree:
    """The distribution of a `RandomTree`. A hidden state holds the length of the stored prefix and the prefix."""

    def __init__(self, tree: RandomTree, context: type["StoredContext"] | None = None) -> None:
        self.tree, self.vocab_size, self.eos, self.max_length = tree, tree.vocab, tree.eos, tree.horizon
        self._context = StoredContext if context is None else context

    def open(self, rows: int, capacity: int, layers: Sequence[int] = ()) -> "StoredContext":
        return self._context(self.tree, torch.full((rows, capacity + 1), EMPTY))


class StoredContext:
    """A cache `stored` (rows, capacity + 1) with the token that was read at each position."""

    def __init__(self, tree: RandomTree, stored: Tensor) -> None:
        self.tree, self.stored = tree, stored

    def features(self, tokens: Tensor, start: Tensor, stop: Tensor, rows: Tensor) -> Tensor:
        features = torch.full((len(rows), 2 + self.tree.horizon), EMPTY)
        for index, (first, last, row) in enumerate(
            zip(start.tolist(), stop.tolist(), rows.tolist(), strict=True)
        ):
            for position in range(first, last + 1):
                self.stored[row, position] = tokens[index, position - 1] if position else START
            features[index, 0] = last
            features[index, 1 : last + 2] = self.stored[row, : last + 1]
        return features

    def log_probs(self, features: Tensor) -> Tensor:
        distributions = [self.tree.conditional(prefix_of(row)) for row in features.tolist()]
        return torch.tensor(distributions, dtype=torch.float64).log()

    def hidden(self, features: Tensor, layer: int) -> Tensor:
        return features

    def copy(self, source: Tensor, rows: Tensor, start: int, stop: int) -> None:
        self.stored[rows, start : stop + 1] = self.stored[source, start : stop + 1]

    def fork(self, rows: Tensor, stop: int) -> "StoredContext":
        forked = torch.full((len(rows), stop + 1), EMPTY)
        kept = self.stored[rows, : stop + 1]
        forked[:, : kept.shape[1]] = kept
        return type(self)(self.tree, forked)


def prefix_of(features: list[int]) -> tuple[int, ...]:
    """Return the prefix in a hidden state. Raise an `AssertionError` if a position was never read."""
    length, first, *rest = features
    assert first == START
    assert EMPTY not in rest[:length]
    return tuple(rest[:length])


class ReadingVerifier:
    """A verifier that reads the stored prefix from the hidden states instead of from the batch."""

    scope, layers = "sequence", (0,)

    def __init__(self, function) -> None:
        self._function = function

    def values(self, decoding, rows):
        states = decoding.hidden(0, rows).tolist()
        return torch.tensor(
            [float(self._function(prefix_of(state))) for state in states], dtype=torch.float64
        )

    def children(self, decoding, rows):
        return None
