"""The batch of sequences that the engine moves: what the walks see of it, and what only the engine may do to it."""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from trialogue.inference.walks import kernels
from trialogue.inference.walks.answers import Laws
from trialogue.inference.walks.knowledge import UNKNOWN, Knowledge, Meter
from trialogue.inference.walks.moves import Moves
from trialogue.inference.walks.tree import renumbered
from trialogue.oracles import Autoregressive, Context, ends

DEFAULT_MEMORY = 1 << 16
_ROWS = 1024

Stop = Callable[[tuple[int, ...]], bool]
"""Whether a completion, given as its token ids, is complete."""


def suggested_rows(oracle: Autoregressive) -> int:
    """How many rows move at once by default: what the oracle suggests, or else 1024."""
    rows: int = getattr(oracle, "batch_size", _ROWS)
    return rows


class Batch:
    """A `Decoding`: rows of tokens over a context that stores evaluations per storage row (slot) and position.

    `path` (rows, capacity + 1) holds the node of every prefix of each row, `_evaluated` (slots, capacity + 1) the
    node whose keys each slot and position holds: a position is evaluated anew only where the two differ. `scratch_rows`
    are as many children as it is wise to evaluate at once. With `scored`,
    `scores` (rows, capacity + 1) accumulates the oracle's log-probabilities, before truncation, along each completion;
    NaN where a token was appended without asking for its law in the same step.
    """

    def __init__(
        self,
        oracle: Autoregressive,
        slots: int,
        capacity: int,
        *,
        layers: tuple[int, ...] = (),
        memory: int = DEFAULT_MEMORY,
        stop: Stop | None = None,
        scored: bool = False,
    ) -> None:
        self.vocab_size, self.eos = oracle.vocab_size, oracle.eos
        self.knowledge = Knowledge(oracle.vocab_size, memory)
        self.meter = Meter(0)
        self._context: Context | None = oracle.open(slots, capacity, layers)
        self._first = getattr(self._context, "first", 0)
        self._recomputes = getattr(self._context, "recomputes", False)
        self._forked_from: tuple[Batch, Tensor] | None = None
        self._stop, self._scored = stop, scored
        self._answers: list[
            tuple[Tensor, Tensor, Tensor]
        ] = []  # of this step: rows, lengths, log-probabilities
        self.scratch_rows = max(slots, suggested_rows(oracle))
        self._evaluated = torch.full((slots, capacity + 1), -1)
        self._slot = torch.zeros(0, dtype=torch.int64)
        self._rows = self._owner = self._slot
        self.tokens = torch.zeros(0, capacity, dtype=torch.int64)
        self.path = torch.zeros(0, capacity + 1, dtype=torch.int64)
        self.scores = torch.zeros(0, capacity + 1 if scored else 0, dtype=torch.float64)
        self.lengths = self.start = self.limit = self._slot
        # Of each row the node of its prompt, where that may end in `eos` and still goes on; else -1.
        self._going_on, self._prompts_go_on = self._slot, getattr(oracle, "prompts_go_on", False)
        self.complete, self._completed = torch.zeros(0, dtype=torch.bool), 0

    @property
    def node(self) -> Tensor:
        """Node ids (rows,) of the rows' prefixes."""
        return self.path.gather(1, self.lengths[:, None])[:, 0]

    @property
    def growing(self) -> Tensor:
        """The rows (n,) that are not complete."""
        return self._rows if not self._completed else (~self.complete).nonzero()[:, 0]

    def log_probs(self, rows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Ask for the next-token law (n, vocab) of each row, cut to `lengths` (n,): one query per row asked."""
        features = self._features(rows, lengths, counting=True)
        lengths = self._chosen(self.lengths, rows) if lengths is None else lengths
        if features.shape[1] < self.vocab_size:
            nodes = self._chosen(self.path, rows).gather(1, lengths[:, None])[:, 0]
            laws = self.knowledge.answers.of(nodes, lambda asked: self._laws(features[asked]))
        else:
            # A head that is no larger than what it reads, or none, is applied as fast as its answers are copied.
            laws = self._laws(features)
        if self._scored:
            self._answers.append((rows, lengths, laws[-1]))
        return laws[0]

    def _laws(self, features: Tensor) -> Laws:
        context = self._current_context
        answers = context.log_probs(features)
        untruncated = getattr(context, "untruncated", answers)
        both = (answers,) if untruncated is answers else (answers, untruncated)
        return tuple(laws.to(self.tokens.device) for laws in both)

    @property
    def log_prob(self) -> Tensor:
        """Log-probabilities (rows,) of the completions, before truncation; NaN where they were not asked for."""
        return self.scores.gather(1, self.lengths[:, None])[:, 0]

    def hidden(self, layer: int, rows: Tensor) -> Tensor:
        """Hidden state (n, width) after `layer` blocks at the last position of each row."""
        return self._current_context.hidden(self._features(rows), layer)

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
        child._first, child._recomputes = self._first, self._recomputes
        child.scratch_rows = self.scratch_rows
        child._stop, child._scored = self._stop, False
        child._slot = child._rows = torch.arange(len(rows))
        child._evaluated = self._evaluated[self._slot[rows]]
        child.tokens, child.path = self.tokens[rows], self.path[rows]
        child.lengths, child.start, child.limit = self.lengths[rows], self.start[rows], self.limit[rows]
        child._going_on = self._going_on[rows]
        child._advance(child.lengths, child.lengths, tokens)
        return child

    def add(self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor) -> None:
        """Append rows: sequences `tokens` (n, capacity) of `lengths` (n,) whose first `start` are the prompt."""
        free = torch.ones(len(self._evaluated), dtype=torch.bool)
        free[self._slot] = False
        path = self.knowledge.tree.paths(tokens, lengths, start)
        self._slot = torch.cat((self._slot, free.nonzero()[: len(tokens), 0]))
        self._rows = self._owner = torch.arange(len(self._slot))
        self.tokens, self.path = torch.cat((self.tokens, tokens)), torch.cat((self.path, path))
        self.lengths = torch.cat((self.lengths, lengths))
        self.start, self.limit = torch.cat((self.start, start)), torch.cat((self.limit, limit))
        nodes = path.gather(1, start[:, None])[:, 0]
        self._going_on = torch.cat(
            (self._going_on, nodes if self._prompts_go_on else torch.full_like(nodes, -1))
        )
        self.complete = ends(self.tokens, self.lengths, self.limit, self.eos)
        self.complete &= (self.lengths >= self.limit) | (self.node != self._going_on)
        self._completed = int(self.complete.sum())
        self._stop_rows()
        if self._scored:
            self.scores = torch.cat(
                (self.scores, torch.zeros(len(tokens), self.scores.shape[1], dtype=torch.float64))
            )
        self.meter.extend(len(tokens))

    def select(self, rows: Tensor) -> None:
        """Keep `rows`, in that order; the storage of the others is free for new ones."""
        for name in ("_slot", "tokens", "path", "lengths", "start", "limit", "complete", "_going_on"):
            setattr(self, name, getattr(self, name)[rows])
        if self._scored:
            self.scores = self.scores[rows]
        self._rows = self._owner = torch.arange(len(rows))
        self._completed = int(self.complete.sum())
        self.meter.select(rows)
        slots = len(self._evaluated)
        if len(rows) and int(self._slot.max()) >= 2 * len(rows):
            # Scattered rows make every evaluation gather its keys; packed to the front they are a slice.
            packed = torch.arange(len(rows))
            self._copy_evaluated(self._slot, packed, self.tokens.shape[1])
            self._evaluated[len(rows) : slots] = -1
            self._slot = packed

    def forget(self, prompts: Iterable[tuple[int, ...]]) -> None:
        """Forget all that is known below `prompts`, of which there are no rows and will be none."""
        new = self.knowledge.tree.forget(prompts)
        if new is not None:
            self.knowledge.memory.renumber(new)
            self.knowledge.answers.renumber(new)
            self.path, self._evaluated = renumbered(self.path, new), renumbered(self._evaluated, new)
            self._going_on = renumbered(self._going_on, new)

    def apply(self, moves: Moves) -> None:
        """Move the rows: continue from their sources, cut, append."""
        source, held = moves.source, self.lengths
        if not torch.equal(source, self._rows):
            moved, held = (source != self._rows).nonzero()[:, 0], held[source]
            self._copy(source[moved], moved, moves.length[moved])
        self._advance(held, moves.length, moves.token)
        if self._scored:
            grown = (moves.token >= 0).nonzero()[:, 0]
            self.scores[grown, moves.length[grown] + 1] = math.nan
            for rows, lengths, answers in self._answers:
                kernels.score(
                    self.scores.numpy(),
                    source.numpy(),
                    moves.length.numpy(),
                    moves.token.numpy(),
                    rows.numpy(),
                    lengths.numpy(),
                    answers.numpy(),
                )
            self._answers.clear()

    def _advance(self, held: Tensor, kept: Tensor, appended: Tensor) -> None:
        self.lengths, self.complete, self._completed = self.knowledge.tree.advance(
            self.tokens, self.path, self.limit, self.eos, self._going_on, held, kept, appended
        )
        self._stop_rows()

    def _stop_rows(self) -> None:
        """Complete the rows whose completion says so itself; what a prefix says is remembered of its node."""
        if self._stop is None:
            return
        stopped, nodes = self.knowledge.stopped.values, self.node
        for row in (stopped[nodes] == UNKNOWN).nonzero()[:, 0].tolist():
            completion = self.tokens[row, int(self.start[row]) : int(self.lengths[row])].tolist()
            stopped[nodes[row]] = bool(self._stop(tuple(completion)))
        self.complete |= stopped[nodes] > 0
        self._completed = int(self.complete.sum())

    def _copy(self, source: Tensor, rows: Tensor, lengths: Tensor) -> None:
        self.tokens[rows], self.path[rows] = self.tokens[source], self.path[source]
        if self._scored:
            self.scores[rows] = self.scores[source]
        here, there = self._slot[rows], self._slot[source]
        self._copy_evaluated(there, here, int(lengths.max()))

    def _copy_evaluated(self, source: Tensor, slots: Tensor, last: int) -> None:
        """Copy evaluations up to position `last` between storage rows, and what they are evaluations of."""
        differ = (self._evaluated[slots] != self._evaluated[source]).any(0)[: last + 1].nonzero()
        if len(differ):
            first, last = int(differ[0]), int(differ[-1])
            self._current_context.copy(source, slots, first, last)
            self._evaluated[slots, first : last + 1] = self._evaluated[source, first : last + 1]

    @property
    def _current_context(self) -> Context:
        if self._context is None:
            assert self._forked_from is not None
            parent, rows = self._forked_from
            longest = int(self.lengths.max()) if len(self.lengths) else 0
            self._context = parent._current_context.fork(parent._slot[rows], longest)
        return self._context

    def _chosen(self, values: Tensor, rows: Tensor) -> Tensor:
        """`values[rows]`, without a copy where that is all of them."""
        return values if rows is self._rows else values[rows]

    def _features(self, rows: Tensor, lengths: Tensor | None = None, *, counting: bool = False) -> Tensor:
        """Features (n, features) of `rows` cut to `lengths`, evaluated where they are not remembered."""
        lengths = self._chosen(self.lengths, rows) if lengths is None else lengths
        memory, meter, count = self.knowledge.memory, self.meter, rows.shape[0]
        nodes, start, found = (
            torch.empty_like(rows),
            torch.empty_like(rows),
            torch.empty(count, dtype=torch.bool),
        )
        known, several, repeated = kernels.survey(
            self.path.numpy(),
            self._evaluated.numpy(),
            self._slot.numpy(),
            memory.place_of.values.numpy(),
            memory.nodes,
            self.knowledge.leaders.values.numpy(),
            self._owner.numpy(),
            self.knowledge.asked.values.numpy(),
            meter.queries.numpy(),
            meter.distinct_queries.numpy(),
            counting,
            rows.numpy(),
            lengths.numpy(),
            nodes.numpy(),
            found.numpy(),
            start.numpy(),
        )
        if known == count:
            return memory.features(nodes)
        if self._recomputes:
            start.zero_()
            several = count - known
        if known == 0:
            return self._evaluate(rows, start, lengths, nodes, several, repeated)
        # What is remembered is read first: evaluating the others may make it be forgotten.
        recalled = found.nonzero()[:, 0]
        remembered = memory.features(nodes[recalled])
        missing = (~found).nonzero()[:, 0]
        computed = self._evaluate(
            rows[missing], start[missing], lengths[missing], nodes[missing], several, repeated
        )
        features = computed.new_empty(count, computed.shape[1])
        features[recalled], features[missing] = remembered, computed
        return features

    def _evaluate(
        self, rows: Tensor, start: Tensor, stop: Tensor, nodes: Tensor, several: int, repeated: int = 0
    ) -> Tensor:
        """Evaluate positions `start..stop` of each row; `several` of them have more than one.

        `repeated` of them stand at a node where one before them does.
        """
        if repeated:
            return self._evaluate_once(rows, start, stop, nodes)
        if several in (0, rows.shape[0]):
            return self._run(rows, start, stop)
        alone, others = (start == stop).nonzero()[:, 0], (start < stop).nonzero()[:, 0]
        first = self._run(rows[alone], stop[alone], stop[alone])
        features = first.new_empty(rows.shape[0], first.shape[1])
        features[alone] = first
        features[others] = self._run(rows[others], start[others], stop[others])
        return features

    def _evaluate_once(self, rows: Tensor, start: Tensor, stop: Tensor, nodes: Tensor) -> Tensor:
        """As `_evaluate`, of rows at the same node only the one with the least to evaluate; its keys are copied."""
        _, group = torch.unique(nodes, return_inverse=True)
        order = start.argsort(descending=True, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(len(rows))
        first = torch.full((int(group.max()) + 1,), len(rows)).scatter_reduce(0, group, place, "amin")
        leaders = order[first]
        several = int((start[leaders] < stop[leaders]).sum())
        found = self._evaluate(rows[leaders], start[leaders], stop[leaders], nodes[leaders], several)
        leader = leaders[group]
        led = (rows != rows[leader]).nonzero()[:, 0]
        if len(led):
            here, there = self._slot[rows[led]], self._slot[rows[leader[led]]]
            self._copy_evaluated(there, here, int(stop[led].max()))
        return found[group]

    def _run(self, rows: Tensor, start: Tensor, stop: Tensor) -> Tensor:
        slots, memory, context = self._chosen(self._slot, rows), self.knowledge.memory, self._current_context
        before = getattr(context, "passes", None)
        features = context.features(self._chosen(self.tokens, rows), start, stop, slots)
        self.meter.passes += 1 if before is None else getattr(context, "passes", before) - before
        memory.admit(features)
        places, meter = torch.empty_like(rows), self.meter
        kept, memory.free = kernels.settle(
            self.path.numpy(),
            self._evaluated.numpy(),
            memory.place_of.values.numpy(),
            memory.nodes,
            memory.free,
            self._owner.numpy(),
            meter.forward_passes.numpy(),
            meter.positions.numpy(),
            self._first,
            rows.numpy(),
            slots.numpy(),
            start.numpy(),
            stop.numpy(),
            places.numpy(),
        )
        memory.store(places, kept, features)
        return features
