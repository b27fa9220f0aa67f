"""What a run knows: of every prefix, shared over all its rows, and of every row, what it has cost."""

import torch
from torch import Tensor

from trialogue.inference.walks.answers import Answers
from trialogue.inference.walks.tree import Memory, NodeTable, PrefixTree

UNKNOWN = -1


class Meter:
    """Counts per row of the batch (rows,), and the passes of the oracle that rows share."""

    counts = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")

    def __init__(self, rows: int) -> None:
        zeros = torch.zeros(rows, dtype=torch.int64)
        self.queries, self.distinct_queries, self.verifier_calls = zeros, zeros.clone(), zeros.clone()
        self.forward_passes, self.positions = zeros.clone(), zeros.clone()
        self.passes = 0

    def select(self, rows: Tensor) -> None:
        """Keep the counts of `rows`."""
        for name in self.counts:
            setattr(self, name, getattr(self, name)[rows])

    def extend(self, rows: int) -> None:
        """Append `rows` rows that have counted nothing."""
        zeros = torch.zeros(rows, dtype=torch.int64)
        for name in self.counts:
            setattr(self, name, torch.cat((getattr(self, name), zeros)))


class Knowledge:
    """What one run shares over all its rows: the tree, what is remembered of its nodes, and who was asked."""

    def __init__(self, vocab_size: int, memory: int) -> None:
        self.tree = PrefixTree(vocab_size)
        self.memory = Memory(self.tree, memory)
        self.answers = Answers(self.tree, memory)
        self.leaders = NodeTable(self.tree, -1, torch.int64)
        self.asked = NodeTable(self.tree, False, torch.bool)
        self.stopped = NodeTable(self.tree, UNKNOWN, torch.int8)
        self.verified = NodeTable(self.tree, float("nan"), torch.float64)
