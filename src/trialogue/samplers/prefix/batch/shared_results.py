"""Results that all rows of a run share, and counters of the cost of each row."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.children_cache import ChildrenCache
from trialogue.samplers.prefix.batch.distribution_cache import DistributionCache
from trialogue.samplers.prefix.batch.tree import FeatureCache, NodeTable, NodeTree


class Meter:
    """Counters per row of the batch.

    Args:
        rows: Number of rows.

    Attributes:
        queries: Number (rows,) of queried next-token distributions.
        distinct_queries: Number (rows,) of queries of prefixes that no row had queried before.
        forward_passes: Number (rows,) of evaluations by the oracle.
        positions: Number (rows,) of evaluated positions.
        verifier_calls: Number (rows,) of verifier calls.
        passes: Number of forward passes of whole batches.
    """

    counts = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")

    def __init__(self, rows: int) -> None:
        zeros = torch.zeros(rows, dtype=torch.int64)
        self.queries, self.distinct_queries, self.verifier_calls = zeros, zeros.clone(), zeros.clone()
        self.forward_passes, self.positions = zeros.clone(), zeros.clone()
        self.passes = 0

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """Return the names and values (rows,) of the counters."""
        return ((name, vars(self)[name]) for name in self.counts)

    def select(self, rows: Tensor) -> None:
        """Keep the counters of `rows` (n,), in this order."""
        vars(self).update({name: counts[rows] for name, counts in self.items()})

    def extend(self, rows: int) -> None:
        """Append `rows` rows whose counters are zero."""
        zeros = torch.zeros(rows, dtype=torch.int64)
        vars(self).update({name: torch.cat((counts, zeros)) for name, counts in self.items()})


@dataclass
class CostAccount:
    """Counters to which the cost of each row is added.

    Args:
        meter: The counters.
        owner: Row (rows,) of `meter` for each row.
    """

    meter: Meter
    owner: Tensor

    def of(self, rows: Tensor) -> "CostAccount":
        """Return the counters for children of `rows` (n,)."""
        return CostAccount(self.meter, self.owner[rows])


class SharedResults:
    """Results that all rows of one run share.

    Args:
        vocab_size: Number of tokens.
        memory: Number of prefixes whose features and distributions are cached.

    Attributes:
        checked: Whether the first output of the oracle has been validated.
        tree: Tree of the visited prefixes.
        memory: Cache of features.
        distributions: Cache of next-token distributions, with (True) and without (False) top-k and top-p.
        children: Cache of children with the weights that the sampler assigned to them.
        leaders: First row at each node, for `kernels.locate_rows`.
        queried: Whether each node was queried.
        verified: Verifier value of each node, NaN if it is unknown.
    """

    def __init__(self, vocab_size: int, memory: int) -> None:
        self.checked = False
        self.tree = NodeTree(vocab_size)
        self.memory = FeatureCache(self.tree, memory)
        self.distributions = {cut: DistributionCache(self.tree, memory) for cut in (True, False)}
        self.children = ChildrenCache(vocab_size)
        self.leaders = NodeTable(self.tree, -1, torch.int64)
        self.queried = NodeTable(self.tree, False, torch.bool)
        self.verified = NodeTable(self.tree, float("nan"), torch.float64)
