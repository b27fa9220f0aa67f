"""Caches that all rows of a run share, and counters of the cost of each row."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.children_cache import ChildrenCache
from trialogue.samplers.prefix.batch.distribution_cache import DistributionCache
from trialogue.samplers.prefix.batch.tree import FeatureCache, NodeTable, NodeTree


class Meter:
    """Counters of the cost of each row of a batch.

    A query is a request of a row for a next-token distribution, which may be cached. An evaluation runs the model on
    one or several positions of a row.

    Args:
        rows: Number of rows.

    Attributes:
        queries: Number (rows,) of queries.
        distinct_queries: Number (rows,) of queries of prefixes that no row had queried before.
        forward_passes: Number (rows,) of evaluations by the model.
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
        """Iterate over pairs of the name and the values (rows,) int64 of each counter."""
        return ((name, vars(self)[name]) for name in self.counts)

    def select(self, rows: Tensor) -> None:
        """Remove the counters of all rows except `rows` (n,), which are put in this order."""
        vars(self).update({name: counts[rows] for name, counts in self.items()})

    def extend(self, rows: int) -> None:
        """Append zero counters for `rows` new rows."""
        zeros = torch.zeros(rows, dtype=torch.int64)
        vars(self).update({name: torch.cat((counts, zeros)) for name, counts in self.items()})


@dataclass
class CostAccount:
    """Adds the costs of rows to counters, also for temporary rows.

    A temporary batch contains children, which are rows of another batch followed by one more token. The cost of a child
    is added to the counters of the row that it continues.

    Args:
        meter: The counters.
        owner: Index (rows,) of the counters in `meter` to which each row adds its cost.
    """

    meter: Meter
    owner: Tensor

    def for_children(self, rows: Tensor) -> "CostAccount":
        """Return an account for temporary rows, whose costs are added to the counters of `rows` (n,)."""
        return CostAccount(self.meter, self.owner[rows])


class SharedResults:
    """Caches that all rows of a run share, by prefix. A node is the integer id of a prefix.

    Args:
        vocab_size: Number of tokens.
        memory: Number of prefixes whose features (vectors from which distributions are computed) and distributions are
            cached.
        stores_distributions: Whether distributions are cached.

    Attributes:
        checked: Whether the first output of the model has been validated.
        tree: Tree of the visited prefixes.
        memory: Cache of features.
        distributions: Cache of next-token distributions, with (True) and without (False) top-k and top-p. It is empty
            if distributions are not stored.
        children: Cache of children with the weights that the sampler assigned to them.
        leaders: First row at each node, for `kernels.locate_rows`.
        queried: Whether each node was queried.
        verified: Verifier value of each node, NaN if it is unknown.
        targeted: Sum of the log-values of all targets at each node, NaN if it is unknown.
        log_prob: Log-probability of the completion at each node, with temperature and truncation, NaN if unknown.
    """

    def __init__(self, vocab_size: int, memory: int, stores_distributions: bool = True) -> None:
        self.checked = False
        self.tree = NodeTree(vocab_size)
        self.memory = FeatureCache(self.tree, memory)
        cuts = (True, False) if stores_distributions else ()
        self.distributions = {cut: DistributionCache(self.tree, memory) for cut in cuts}
        self.children = ChildrenCache(vocab_size)
        self.leaders = NodeTable(self.tree, -1, torch.int64)
        self.queried = NodeTable(self.tree, False, torch.bool)
        self.verified, self.targeted, self.log_prob = (
            NodeTable(self.tree, float("nan"), torch.float64) for _ in range(3)
        )
