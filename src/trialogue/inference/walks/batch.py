"""The batch of sequences that the engine moves: what the walks see of it, and what only the engine may do to it."""

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference.walks.moves import Moves
from trialogue.inference.walks.tree import Memory, NodeTable, PrefixTree
from trialogue.oracles import Autoregressive, Context, ends

DEFAULT_MEMORY = 1 << 16


class Meter:
    """Counts per row of the batch (rows,), and in total for what rows share."""

    def __init__(self, rows: int) -> None:
        self.queries = torch.zeros(rows, dtype=torch.int64)
        self.distinct_queries = torch.zeros(rows, dtype=torch.int64)
        self.verifier_calls = torch.zeros(rows, dtype=torch.int64)
        self.forward_passes = 0
        self.positions = 0

    def select(self, rows: Tensor) -> None:
        """Keep the counts of `rows`."""
        self.queries = self.queries[rows]
        self.distinct_queries = self.distinct_queries[rows]
        self.verifier_calls = self.verifier_calls[rows]

    def extend(self, rows: int) -> None:
        """Append `rows` rows that have counted nothing."""
        zeros = torch.zeros(rows, dtype=torch.int64)
        self.queries = torch.cat((self.queries, zeros))
        self.distinct_queries = torch.cat((self.distinct_queries, zeros))
        self.verifier_calls = torch.cat((self.verifier_calls, zeros))


class Knowledge:
    """What one run shares over all its rows: the tree, what is remembered of its nodes, and who was asked."""

    def __init__(self, vocab_size: int, memory: int) -> None:
        self.tree = PrefixTree(vocab_size)
        self.memory = Memory(memory)
        self.asked = NodeTable(self.tree, -1, torch.int64)
        self.verified = NodeTable(self.tree, float("nan"), torch.float64)


class Batch:
    """A `Decoding`: rows of tokens over a context that stores evaluations per storage row (slot) and position.

    `path` (rows, capacity + 1) holds the node of every prefix of each row, `_evaluated` (slots, capacity + 1) the
    node whose keys each slot and position holds: a position is evaluated anew only where the two differ.
    """

    def __init__(
        self,
        oracle: Autoregressive,
        slots: int,
        capacity: int,
        *,
        layers: tuple[int, ...] = (),
        memory: int = DEFAULT_MEMORY,
    ) -> None:
        self.vocab_size, self.eos = oracle.vocab_size, oracle.eos
        self.knowledge = Knowledge(oracle.vocab_size, memory)
        self.meter = Meter(0)
        self._context: Context | None = oracle.open(slots, capacity, layers)
        self._forked_from: tuple[Batch, Tensor] | None = None
        self._evaluated = torch.full((slots, capacity + 1), -1)
        self._slot = torch.zeros(0, dtype=torch.int64)
        self._owner = self._slot
        self.tokens = torch.zeros(0, capacity, dtype=torch.int64)
        self.path = torch.zeros(0, capacity + 1, dtype=torch.int64)
        self.lengths = self.start = self.limit = self._slot
        self.complete = torch.zeros(0, dtype=torch.bool)

    @property
    def node(self) -> Tensor:
        """Node ids (rows,) of the rows' prefixes."""
        return self.path.gather(1, self.lengths[:, None])[:, 0]

    def log_probs(self, rows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Ask for the next-token law (n, vocab) of each row, cut to `lengths` (n,): one query per row asked."""
        lengths = self.lengths[rows] if lengths is None else lengths
        nodes = self.path[rows, lengths]
        self._count_queries(nodes, self._owner[rows])
        return self._current_context.log_probs(self._features(rows, lengths, nodes)).to(self.tokens.device)

    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Hidden state (n, width) after `layer` blocks at the last position of each row."""
        lengths = self.lengths[rows]
        features = self._features(rows, lengths, self.path[rows, lengths])
        return self._current_context.hidden(features, layer)

    def count_verifier_calls(self, rows: Tensor) -> None:
        """Count one verifier call per row in `rows` (n,)."""
        self.meter.verifier_calls.index_add_(0, self._owner[rows], torch.ones_like(rows))

    def peek(self, tokens: Tensor, rows: Tensor) -> "Batch":
        """Children on scratch rows: row i continues `rows[i]` with `tokens[i]` (both (n,)).

        They share the tree, what is remembered and the meter; their keys are copied when first needed.
        """
        child = object.__new__(type(self))
        child.vocab_size, child.eos, child.knowledge = self.vocab_size, self.eos, self.knowledge
        child.meter, child._owner = self.meter, self._owner[rows]
        child._context, child._forked_from = None, (self, rows)
        child._slot = torch.arange(len(rows))
        child._evaluated = self._evaluated[self._slot[rows]]
        child.tokens, child.path = self.tokens[rows], self.path[rows]
        child.lengths, child.start, child.limit = self.lengths[rows], self.start[rows], self.limit[rows]
        child._append(tokens, torch.arange(len(rows)))
        return child

    def add(self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor) -> None:
        """Append rows: sequences `tokens` (n, capacity) of `lengths` (n,) whose first `start` are the prompt."""
        free = torch.ones(len(self._evaluated), dtype=torch.bool)
        free[self._slot] = False
        path = self._path(tokens, lengths, start)
        self._slot = torch.cat((self._slot, free.nonzero()[: len(tokens), 0]))
        self._owner = torch.arange(len(self._slot))
        self.tokens, self.path = torch.cat((self.tokens, tokens)), torch.cat((self.path, path))
        self.lengths = torch.cat((self.lengths, lengths))
        self.start, self.limit = torch.cat((self.start, start)), torch.cat((self.limit, limit))
        self.complete = ends(self.tokens, self.lengths, self.limit, self.eos)
        self.meter.extend(len(tokens))

    def select(self, rows: Tensor) -> None:
        """Keep `rows`, in that order; the storage of the others is free for new ones."""
        for name in ("_slot", "tokens", "path", "lengths", "start", "limit", "complete"):
            setattr(self, name, getattr(self, name)[rows])
        self._owner = torch.arange(len(rows))
        self.meter.select(rows)
        slots = len(self._evaluated)
        if len(rows) and int(self._slot.max()) >= 2 * len(rows):
            # Scattered rows make every evaluation gather its keys; packed to the front they are a slice.
            packed = torch.arange(len(rows))
            self._current_context.copy(self._slot, packed, 0, int(self.lengths.max()))
            self._evaluated[packed] = self._evaluated[self._slot]
            self._evaluated[len(rows) : slots] = -1
            self._slot = packed

    def apply(self, moves: Moves) -> None:
        """Move the rows: continue from their sources, cut, append."""
        source, rows = moves.source, torch.arange(len(self.lengths))
        moved = (source != rows).nonzero()[:, 0]
        if len(moved):
            self._copy(source[moved], moved, moves.length[moved])
        self.lengths = moves.length
        grown = (moves.token >= 0).nonzero()[:, 0]
        self._append(moves.token[grown], grown)

    def _append(self, tokens: Tensor, rows: Tensor) -> None:
        lengths = self.lengths[rows]
        nodes = self.knowledge.tree.children(self.path[rows, lengths], tokens)
        self.tokens[rows, lengths] = tokens
        self.path[rows, lengths + 1] = nodes
        self.lengths = self.lengths.index_copy(0, rows, lengths + 1)
        self.complete = ends(self.tokens, self.lengths, self.limit, self.eos)

    def _copy(self, source: Tensor, rows: Tensor, lengths: Tensor) -> None:
        self.tokens[rows], self.path[rows] = self.tokens[source], self.path[source]
        here, there = self._slot[rows], self._slot[source]
        differ = (self._evaluated[here] != self._evaluated[there]).any(0)[: int(lengths.max()) + 1].nonzero()
        if len(differ):
            first, last = int(differ[0]), int(differ[-1])
            self._current_context.copy(there, here, first, last)
            self._evaluated[here, first : last + 1] = self._evaluated[there, first : last + 1]

    def _path(self, tokens: Tensor, lengths: Tensor, start: Tensor) -> Tensor:
        tree = self.knowledge.tree
        path = torch.zeros(len(tokens), tokens.shape[1] + 1, dtype=torch.int64)
        prompts = zip(tokens.tolist(), start.tolist(), strict=True)
        roots = [tree.root(tuple(row[:length])) for row, length in prompts]
        path[:, 0] = torch.tensor(roots, dtype=torch.int64)
        for position in range(int(lengths.max()) if len(lengths) else 0):
            rows = (lengths > position).nonzero()[:, 0]
            path[rows, position + 1] = tree.children(path[rows, position], tokens[rows, position])
        return path

    def _count_queries(self, nodes: Tensor, owners: Tensor) -> None:
        asked = self.knowledge.asked.values
        turn = torch.arange(len(nodes))
        new = asked[nodes] < 0
        asked[nodes] = turn  # of several rows that ask for one new node, one asks first
        new &= asked[nodes] == turn
        self.meter.queries.index_add_(0, owners, torch.ones_like(owners))
        self.meter.distinct_queries.index_add_(0, owners, new.long())

    @property
    def _current_context(self) -> Context:
        if self._context is None:
            assert self._forked_from is not None
            parent, rows = self._forked_from
            self._context = parent._current_context.fork(parent._slot[rows])
        return self._context

    def _features(self, rows: Tensor, lengths: Tensor, nodes: Tensor) -> Tensor:
        memory = self.knowledge.memory
        found = memory.find(nodes)
        if bool(found.all()):
            return memory.features(nodes)
        if not bool(found.any()):
            features = self._evaluate(rows, lengths, nodes)
            memory.store(nodes, features)
            return features
        missing = (~found).nonzero()[:, 0]
        computed = self._evaluate(rows[missing], lengths[missing], nodes[missing])
        features = computed.new_empty(len(rows), computed.shape[1])
        known = found.nonzero()[:, 0]
        features[known] = memory.features(nodes[known])
        features[missing] = computed
        memory.store(nodes[missing], computed)
        return features

    def _evaluate(self, rows: Tensor, lengths: Tensor, nodes: Tensor) -> Tensor:
        """Evaluate each row from its first position that is not evaluated yet."""
        slots = self._slot[rows]
        positions = torch.arange(self.path.shape[1])
        stale = (self._evaluated[slots] != self.path[rows]) & (positions <= lengths[:, None])
        start = torch.where(stale.any(1), stale.int().argmax(1), lengths)
        single = start == lengths
        if bool(single.all()):
            return self._run(rows, start, lengths, slots)
        features: list[tuple[Tensor, Tensor]] = []
        if bool(single.any()):
            some = single.nonzero()[:, 0]
            features.append((some, self._run(rows[some], start[some], lengths[some], slots[some])))
        several = (~single).nonzero()[:, 0]
        # Rows at the same node hold the same prefix: it is evaluated once and its keys are copied.
        _, inverse = torch.unique(nodes[several], return_inverse=True)
        first = torch.full((int(inverse.max()) + 1,), len(several)).scatter_reduce(
            0, inverse, torch.arange(len(several)), "amin"
        )
        leaders = several[first]
        led = self._run(rows[leaders], start[leaders], lengths[leaders], slots[leaders])
        features.append((several, led[inverse]))
        others = several[first[inverse] != torch.arange(len(several))]
        if len(others):
            there = slots[several[first[inverse]]][first[inverse] != torch.arange(len(several))]
            self._current_context.copy(there, slots[others], 0, int(lengths[others].max()))
            self._evaluated[slots[others]] = self._evaluated[there]
        result = features[0][1].new_empty(len(rows), features[0][1].shape[1])
        for index, values in features:
            result[index] = values
        return result

    def _run(self, rows: Tensor, start: Tensor, stop: Tensor, slots: Tensor) -> Tensor:
        everything = len(rows) == len(self.tokens) and bool((rows == torch.arange(len(rows))).all())
        tokens = self.tokens if everything else self.tokens[rows]
        features = self._current_context.features(tokens, start, stop, slots)
        path = self.path if everything else self.path[rows]
        positions = torch.arange(path.shape[1])
        new = (positions >= start[:, None]) & (positions <= stop[:, None])
        self._evaluated[slots] = torch.where(new, path, self._evaluated[slots])
        self.meter.forward_passes += 1
        self.meter.positions += int((stop - start + 1).sum())
        return features


def checked_prompts(prompts: Tensor, lengths: Tensor, vocab_size: int) -> None:
    """Raise `InputError` unless every token of `prompts` (n, width) within `lengths` (n,) is in the vocabulary."""
    within = torch.arange(prompts.shape[1]) < lengths[:, None]
    wrong = within & ((prompts < 0) | (prompts >= vocab_size))
    if bool(wrong.any()):
        row, position = wrong.nonzero()[0].tolist()
        raise InputError(
            f"prompts[{row}][{position}]",
            int(prompts[row, position]),
            f"use token ids from 0 to {vocab_size - 1}",
        )
