"""The batch of sequences that the engine moves: what the walks see of it, and what only the engine may do to it."""

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.inference.walks import kernels
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
        self.asked = NodeTable(self.tree, False, torch.bool)
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
        self._rows = self._owner = self._slot
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
        meter, asked = self.meter, self.knowledge.asked.values
        kernels.count(
            nodes.numpy(),
            self._owner[rows].numpy(),
            asked.numpy(),
            meter.queries.numpy(),
            meter.distinct_queries.numpy(),
        )
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
        child._slot = child._rows = torch.arange(len(rows))
        child._evaluated = self._evaluated[self._slot[rows]]
        child.tokens, child.path = self.tokens[rows], self.path[rows]
        child.lengths, child.start, child.limit = self.lengths[rows], self.start[rows], self.limit[rows]
        child._advance(child.lengths, tokens)
        return child

    def add(self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor) -> None:
        """Append rows: sequences `tokens` (n, capacity) of `lengths` (n,) whose first `start` are the prompt."""
        free = torch.ones(len(self._evaluated), dtype=torch.bool)
        free[self._slot] = False
        path = self._path(tokens, lengths, start)
        self._slot = torch.cat((self._slot, free.nonzero()[: len(tokens), 0]))
        self._rows = self._owner = torch.arange(len(self._slot))
        self.tokens, self.path = torch.cat((self.tokens, tokens)), torch.cat((self.path, path))
        self.lengths = torch.cat((self.lengths, lengths))
        self.start, self.limit = torch.cat((self.start, start)), torch.cat((self.limit, limit))
        self.complete = ends(self.tokens, self.lengths, self.limit, self.eos)
        self.meter.extend(len(tokens))

    def select(self, rows: Tensor) -> None:
        """Keep `rows`, in that order; the storage of the others is free for new ones."""
        for name in ("_slot", "tokens", "path", "lengths", "start", "limit", "complete"):
            setattr(self, name, getattr(self, name)[rows])
        self._rows = self._owner = torch.arange(len(rows))
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
        source = moves.source
        if not torch.equal(source, self._rows):
            moved = (source != self._rows).nonzero()[:, 0]
            self._copy(source[moved], moved, moves.length[moved])
        self._advance(moves.length, moves.token)

    def _advance(self, kept: Tensor, appended: Tensor) -> None:
        self.lengths, self.complete = self.knowledge.tree.advance(
            self.tokens, self.path, self.limit, self.eos, kept, appended
        )

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

    @property
    def _current_context(self) -> Context:
        if self._context is None:
            assert self._forked_from is not None
            parent, rows = self._forked_from
            self._context = parent._current_context.fork(parent._slot[rows])
        return self._context

    def _features(self, rows: Tensor, lengths: Tensor, nodes: Tensor) -> Tensor:
        memory = self.knowledge.memory
        found, total = memory.find(nodes)
        if total == len(nodes):
            return memory.features(nodes)
        if total == 0:
            features = self._evaluate(rows, lengths, nodes)
            memory.store(nodes, features)
            return features
        missing, known = (~found).nonzero()[:, 0], found.nonzero()[:, 0]
        computed = self._evaluate(rows[missing], lengths[missing], nodes[missing])
        features = computed.new_empty(len(rows), computed.shape[1])
        features[known] = memory.features(nodes[known])
        features[missing] = computed
        memory.store(nodes[missing], computed)
        return features

    def _evaluate(self, rows: Tensor, lengths: Tensor, nodes: Tensor) -> Tensor:
        """Evaluate each row from its first position that is not evaluated yet."""
        slots, start = self._slot[rows], torch.empty_like(lengths)
        singles = kernels.stale(
            self.path.numpy(),
            self._evaluated.numpy(),
            rows.numpy(),
            slots.numpy(),
            lengths.numpy(),
            start.numpy(),
        )
        if singles == len(rows):
            return self._run(rows, start, lengths, slots)
        single = start == lengths
        features: list[tuple[Tensor, Tensor]] = []
        if singles:
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
        everything = len(rows) == len(self._rows) and torch.equal(rows, self._rows)
        tokens = self.tokens if everything else self.tokens[rows]
        features = self._current_context.features(tokens, start, stop, slots)
        self.meter.positions += kernels.mark(
            self.path.numpy(),
            self._evaluated.numpy(),
            rows.numpy(),
            slots.numpy(),
            start.numpy(),
            stop.numpy(),
        )
        self.meter.forward_passes += 1
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
