"""The sequences of a batch: their tokens, the nodes of their prefixes, and which of them are complete."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.oracles import ends
from trialogue.samplers.prefix.batch.tree import NodeTable, NodeTree, renumbered


@dataclass(frozen=True)
class SequenceStop:
    """Whether a sequence is complete, by a `function` of prompt and completion and of the prompt's length."""

    function: Callable[[tuple[int, ...], int], bool]


Stop = Callable[[tuple[int, ...]], bool] | SequenceStop
"""Whether a completion, given as its token ids, is complete; or the same by prompt and completion."""

_UNKNOWN = -1


def says(stop: Stop, sequence: tuple[int, ...], start: int) -> bool:
    """What `stop` says of a `sequence` whose first `start` tokens are the prompt."""
    return stop.function(sequence, start) if isinstance(stop, SequenceStop) else stop(sequence[start:])


class Stopping:
    """What a stop function says of the nodes of a tree: asked once of each. There may be one by rule, for some."""

    def __init__(self, stop: Stop | Mapping[int, Stop], tree: NodeTree) -> None:
        self._stop, self._stopped = stop, NodeTable(tree, _UNKNOWN, torch.int8)

    def of(self, rows: "BatchRows") -> Tensor:
        """Which of `rows` (rows,) bool are complete because of what their completions are."""
        stopped, nodes = self._stopped.values, rows.node
        for row in (stopped[nodes] == _UNKNOWN).nonzero()[:, 0].tolist():
            stop = self._stop.get(int(rows.rule[row])) if isinstance(self._stop, Mapping) else self._stop
            if stop is None:
                stopped[nodes[row]] = False
                continue
            sequence, start = tuple(rows.tokens[row, : int(rows.lengths[row])].tolist()), int(rows.start[row])
            stopped[nodes[row]] = bool(says(stop, sequence, start))
        return stopped[nodes] > 0


@dataclass(frozen=True)
class Ends:
    """When a sequence is complete, apart from its limit: at the token `eos`, or where `stopping` says so.

    A prompt that ends in `eos` is complete, unless `prompts_go_on`.
    """

    eos: int | None = None
    prompts_go_on: bool = False
    stopping: Stopping | None = None


class BatchRows:
    """Sequences that grow and shrink, on a tree of prefixes.

    `tokens` (rows, capacity) int64, `path` (rows, capacity + 1) the node of every prefix of each row, `lengths`,
    `start`, `limit` and `rule` (rows,) int64, `complete` (rows,) bool. `going_on` (rows,) is the node of a row's prompt
    where that may end in the end of sequence and still goes on, else -1. `everything` (rows,) are the indices of all
    rows.
    """

    def __init__(self, tree: NodeTree, capacity: int, when: Ends) -> None:
        self.tree, self.ends = tree, when
        self.tokens = torch.zeros(0, capacity, dtype=torch.int64)
        self.path = torch.zeros(0, capacity + 1, dtype=torch.int64)
        self.lengths = self.start = self.limit = self.going_on = torch.zeros(0, dtype=torch.int64)
        self.rule = self.lengths
        self.everything = self.lengths
        self.complete, self._completed = torch.zeros(0, dtype=torch.bool), 0

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def node(self) -> Tensor:
        """Node ids (rows,) of the rows' prefixes."""
        return self.path.gather(1, self.lengths[:, None])[:, 0]

    @property
    def growing(self) -> Tensor:
        """The rows (n,) that are not complete."""
        return self.everything if not self._completed else (~self.complete).nonzero()[:, 0]

    def of(self, values: Tensor, rows: Tensor) -> Tensor:
        """`values[rows]`, without a copy where that is all of them."""
        return values if rows is self.everything else values[rows]

    def add(
        self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor, rule: Tensor | None = None
    ) -> None:
        """Append sequences `tokens` (n, capacity) of `lengths` (n,) whose first `start` (n,) tokens are the prompt.

        `rule` (n,) is which rule each is under, by default 0.
        """
        path = self.tree.paths(tokens, lengths, start, rule)
        prompts = path.gather(1, start[:, None])[:, 0]
        self.tokens, self.path = torch.cat((self.tokens, tokens)), torch.cat((self.path, path))
        self.lengths = torch.cat((self.lengths, lengths))
        self.start, self.limit = torch.cat((self.start, start)), torch.cat((self.limit, limit))
        self.rule = torch.cat((self.rule, torch.zeros_like(start) if rule is None else rule))
        going_on = prompts if self.ends.prompts_go_on else torch.full_like(prompts, -1)
        self.going_on = torch.cat((self.going_on, going_on))
        self.everything = torch.arange(len(self.lengths))
        complete = ends(self.tokens, self.lengths, self.limit, self.ends.eos)
        self.complete = complete & ((self.lengths >= self.limit) | (self.node != self.going_on))
        self._completed = int(self.complete.sum())
        self._stop()

    def select(self, rows: Tensor) -> None:
        """Keep `rows`, in that order."""
        self._take(self, rows)
        self.complete = self.complete[rows]
        self._completed = int(self.complete.sum())

    def children(self, tokens: Tensor, rows: Tensor) -> "BatchRows":
        """BatchRows of their own: row i continues `rows[i]` with `tokens[i]` (both (n,))."""
        child = BatchRows(self.tree, 0, self.ends)
        child._take(self, rows)
        longest, capacity = int(child.lengths.max()) if len(rows) else 0, child.tokens.shape[1]
        if longest == capacity:  # a batch that only holds sequences has no room for more
            child.tokens, child.path = (
                pad(child.tokens, (0, capacity + 1)),
                pad(child.path, (0, capacity + 1)),
            )
        child.advance(child.lengths, child.lengths, tokens)
        return child

    def _take(self, other: "BatchRows", rows: Tensor) -> None:
        """Be `rows` (n,) of `other`, in that order."""
        self.tokens, self.path, self.lengths = other.tokens[rows], other.path[rows], other.lengths[rows]
        self.start, self.limit, self.going_on = other.start[rows], other.limit[rows], other.going_on[rows]
        self.rule = other.rule[rows]
        self.everything = torch.arange(len(rows))

    def continue_from(self, source: Tensor, rows: Tensor) -> None:
        """Let `rows` hold the tokens that `source` (both (n,)) do; lengths are those of the next `advance`."""
        self.tokens[rows], self.path[rows] = self.tokens[source], self.path[source]

    def advance(self, held: Tensor, kept: Tensor, appended: Tensor) -> None:
        """Cut rows, which hold `held` tokens, to `kept` and append `appended`, -1 for none; all (rows,)."""
        self.lengths, self.complete, self._completed = self.tree.advance(
            self.tokens, self.path, self.limit, self.ends.eos, self.going_on, held, kept, appended
        )
        self._stop()

    def renumber(self, new: Tensor) -> None:
        """Nodes have `new` ids (nodes,), -1 where they were forgotten."""
        self.path, self.going_on = renumbered(self.path, new), renumbered(self.going_on, new)

    def _stop(self) -> None:
        """Complete the rows whose completions say so themselves."""
        if self.ends.stopping is not None:
            self.complete |= self.ends.stopping.of(self)
            self._completed = int(self.complete.sum())
