"""What a run knows: of every prefix, shared over all its rows, and of every row, what it has cost."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.answers import Answers
from trialogue.samplers.prefix.batch.tree import Memory, NodeTable, NodeTree
from trialogue.samplers.prefix.batch.weighed import WeighedChildren


class Meter:
    """Counts per row of the batch (rows,), and the passes of the oracle that rows share."""

    counts = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")

    def __init__(self, rows: int) -> None:
        zeros = torch.zeros(rows, dtype=torch.int64)
        self.queries, self.distinct_queries, self.verifier_calls = zeros, zeros.clone(), zeros.clone()
        self.forward_passes, self.positions = zeros.clone(), zeros.clone()
        self.passes = 0

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """The counts (rows,) by name."""
        return ((name, vars(self)[name]) for name in self.counts)

    def select(self, rows: Tensor) -> None:
        """Keep the counts of `rows`."""
        vars(self).update({name: counts[rows] for name, counts in self.items()})

    def extend(self, rows: int) -> None:
        """Append `rows` rows that have counted nothing."""
        zeros = torch.zeros(rows, dtype=torch.int64)
        vars(self).update({name: torch.cat((counts, zeros)) for name, counts in self.items()})


@dataclass
class Bill:
    """Who pays for what rows ask: of each row its `owner` (rows,), a row of `meter`."""

    meter: Meter
    owner: Tensor

    def of(self, rows: Tensor) -> "Bill":
        """That of children of `rows` (n,): the same pay."""
        return Bill(self.meter, self.owner[rows])


class Knowledge:
    """What one run shares over all its rows: the tree, what is remembered of its nodes, and who was asked.

    `answers` are remembered by whether top-k and top-p have cut them; `weighed` are children as the sampler weighs
    them. `checked` says whether the first answer of the oracle has been checked.
    """

    def __init__(self, vocab_size: int, memory: int) -> None:
        self.checked = False
        self.tree = NodeTree(vocab_size)
        self.memory = Memory(self.tree, memory)
        self.answers = {cut: Answers(self.tree, memory) for cut in (True, False)}
        self.weighed = WeighedChildren(vocab_size)
        self.leaders = NodeTable(self.tree, -1, torch.int64)
        self.asked = NodeTable(self.tree, False, torch.bool)
        self.verified = NodeTable(self.tree, float("nan"), torch.float64)
