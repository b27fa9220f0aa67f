"""Reuse of model evaluations that are stored in a key-value cache."""

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.errors import InputError
from trialogue.oracles import Context
from trialogue.oracles.output_checks import require_features
from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.batch.rows import BatchRows
from trialogue.samplers.prefix.batch.shared_results import CostAccount, SharedResults
from trialogue.samplers.prefix.batch.tree import renumber_nodes


class Evaluations:
    """Model evaluations of the sequences (rows) of a batch, with reuse of the key-value cache.

    Each row uses one slot of the key-value cache. A token is evaluated only if the slot does not hold it yet at its
    position. To compare the two, every prefix has an integer id.

    Args:
        opened: Function that returns the key-value cache. It is called when the cache is first needed.
        evaluated: Ids (slots, capacity + 1) of the prefixes in each slot, by their length, and -1 where a slot is
            empty.
        slot: Index (rows,) of the slot of each row.
        rows: The sequences.
        shared: Results that are stored by prefix and shared by all rows.
        account: Counters of model evaluations.
    """

    def __init__(
        self,
        opened: Callable[[], Context],
        evaluated: Tensor,
        slot: Tensor,
        rows: BatchRows,
        shared: SharedResults,
        account: CostAccount,
    ) -> None:
        self._opened, self.evaluated, self.slot = opened, evaluated, slot
        self._rows, self._shared, self._account = rows, shared, account

    @cached_property
    def context(self) -> Context:
        """Key-value cache of the model."""
        return self._opened()

    def children(self, rows: Tensor, children: BatchRows, account: CostAccount) -> "Evaluations":
        """Return the evaluations of a temporary batch, whose rows are rows of this batch followed by one token.

        Args:
            rows: Row indices (n,) that are continued.
            children: The n continued sequences.
            account: Counters to which their costs are added.
        """
        slots = self.slot[rows]

        def forked() -> Context:
            longest = int(children.lengths.max()) if len(children.lengths) else 0
            return self.context.fork(slots, longest)

        evaluated = self.evaluated[slots]
        if (more := children.path.shape[1] - evaluated.shape[1]) > 0:
            evaluated = pad(evaluated, (0, more), value=-1)
        return Evaluations(forked, evaluated, torch.arange(len(rows)), children, self._shared, account)

    def add(self, count: int) -> None:
        """Assign free slots (storage rows) to `count` new rows."""
        free = torch.ones(len(self.evaluated), dtype=torch.bool)
        free[self.slot] = False
        self.slot = torch.cat((self.slot, free.nonzero()[:count, 0]))

    def select(self, rows: Tensor) -> None:
        """Keep only the rows with indices `rows` (n,), in this order, and free their slots (storage rows)."""
        self.slot = self.slot[rows]
        if len(rows) and int(self.slot.max()) >= 2 * len(rows):
            # Keys of scattered slots must be gathered for every evaluation; packed slots are a slice.
            packed = torch.arange(len(rows))
            self._copy(self.slot, packed, self._rows.tokens.shape[1])
            self.evaluated[len(rows) :] = -1
            self.slot = packed

    def continue_from(self, source: Tensor, rows: Tensor, lengths: Tensor) -> None:
        """Copy cached evaluations between rows, so that a row can continue from the tokens of another row.

        Args:
            source: Indices (n,) of the rows that are copied.
            rows: Indices (n,) of the rows that are overwritten.
            lengths: Numbers (n,) of tokens whose evaluations are needed. All rows are copied up to the
                largest.
        """
        self._copy(self.slot[source], self.slot[rows], int(lengths.max()))

    def renumber(self, new: Tensor) -> None:
        """Renumber the stored nodes (prefixes) after nodes have been removed from the tree.

        Args:
            new: New id (nodes,) of each node, -1 for removed nodes.
        """
        self.evaluated = renumber_nodes(self.evaluated, new)

    def _copy(self, source: Tensor, slots: Tensor, last: int) -> None:
        """Copy cached positions 0 to `last` from the storage rows `source` (n,) to the storage rows `slots` (n,)."""
        differ = (self.evaluated[slots] != self.evaluated[source]).any(0)[: last + 1].nonzero()
        if len(differ):
            first, last = int(differ[0]), int(differ[-1])
            self.context.copy(source, slots, first, last)
            self.evaluated[slots, first : last + 1] = self.evaluated[source, first : last + 1]

    def features(self, rows: Tensor, lengths: Tensor, *, counting: bool = False) -> Tensor:
        """Return the model's feature vectors after the first `lengths` tokens of some rows.

        Next-token distributions and hidden states are computed from them. Rows whose features are cached are
        not evaluated.

        Args:
            rows: Row indices (n,) int64.
            lengths: Lengths (n,) to which the rows are cut.
            counting: Count one query per row (default: False).

        Returns:
            Features (n, features).

        Raises:
            InputError: If there are no rows and the number of features is still unknown.
        """
        shared, memory, meter = self._shared, self._shared.memory, self._account.meter
        count = rows.shape[0]
        if not count and memory.is_empty:
            raise InputError("rows", 0, "give at least one row in the first call")
        nodes, start = torch.empty_like(rows), torch.empty_like(rows)
        remembered = torch.empty(count, dtype=torch.bool)
        known, repeated = kernels.locate_rows(
            self._rows.path.numpy(),
            self.evaluated.numpy(),
            self.slot.numpy(),
            memory.place_of.values.numpy(),
            memory.nodes,
            shared.leaders.values.numpy(),
            self._account.owner.numpy(),
            shared.queried.values.numpy(),
            meter.queries.numpy(),
            meter.distinct_queries.numpy(),
            counting,
            rows.numpy(),
            lengths.numpy(),
            nodes.numpy(),
            remembered.numpy(),
            start.numpy(),
        )
        if known == count:
            return memory.features(nodes)
        if self.context.recomputes:
            start.zero_()
        if known == 0:
            return self._evaluate(rows, start, lengths, nodes, repeated)
        # Cached features are read first, because evaluating the others may overwrite them.
        recalled, missing = remembered.nonzero()[:, 0], (~remembered).nonzero()[:, 0]
        known_features = memory.features(nodes[recalled])
        computed = self._evaluate(rows[missing], start[missing], lengths[missing], nodes[missing], repeated)
        features = computed.new_empty(count, computed.shape[1])
        features[recalled], features[missing] = known_features, computed
        return features

    def _evaluate(self, rows: Tensor, start: Tensor, stop: Tensor, nodes: Tensor, repeated: int) -> Tensor:
        """Evaluate positions `start..stop` of each row, and return features (n, features).

        `repeated` is the number of rows with the same prefix (node) as an earlier row.
        """
        return self._evaluate_once(rows, start, stop, nodes) if repeated else self._pass(rows, start, stop)

    def _evaluate_once(self, rows: Tensor, start: Tensor, stop: Tensor, nodes: Tensor) -> Tensor:
        """Evaluate each distinct prefix once, and copy the result to all rows with this prefix."""
        _, group = torch.unique(nodes, return_inverse=True)
        order = start.argsort(descending=True, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(rows))
        first = torch.full((int(group.max()) + 1,), len(rows)).scatter_reduce(0, group, place, "amin")
        leaders = order[first]
        of_leaders = self._pass(rows[leaders], start[leaders], stop[leaders])
        leader = leaders[group]
        led = (rows != rows[leader]).nonzero()[:, 0]
        if len(led):
            self.continue_from(rows[leader[led]], rows[led], stop[led])
        return of_leaders[group]

    def _pass(self, rows: Tensor, start: Tensor, stop: Tensor) -> Tensor:
        """Run the model on positions `start..stop` of each row, and return features."""
        slots, memory, context = self._rows.take(self.slot, rows), self._shared.memory, self.context
        meter, before = self._account.meter, context.passes
        features = context.features(self._rows.take(self._rows.tokens, rows), start, stop, slots)
        if not self._shared.checked:
            require_features(features, len(rows))
        meter.passes += 1 if before is None or context.passes is None else context.passes - before
        memory.admit(features)
        places = torch.empty_like(rows)
        kept, memory.free = kernels.record_evaluations(
            self._rows.path.numpy(),
            self.evaluated.numpy(),
            memory.place_of.values.numpy(),
            memory.nodes,
            memory.free,
            self._account.owner.numpy(),
            meter.forward_passes.numpy(),
            meter.positions.numpy(),
            context.first,
            rows.numpy(),
            slots.numpy(),
            start.numpy(),
            stop.numpy(),
            places.numpy(),
        )
        memory.store(places, kept, features)
        return features
