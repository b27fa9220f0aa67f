"""Token ids and lengths of the sequences in a batch, and the conditions under which they are complete."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from trialogue.oracles import are_complete
from trialogue.samplers.prefix.batch.tree import NodeTable, NodeTree, renumber_nodes


@dataclass(frozen=True)
class SequenceStop:
    """Stop condition that depends on prompt and completion.

    Args:
        function: Function of the token ids of prompt and completion, and of the length of the prompt. It returns
            whether the sequence is complete.
    """

    function: Callable[[tuple[int, ...], int], bool]


Stop = Callable[[tuple[int, ...]], bool] | SequenceStop
"""Function that returns whether a completion, a tuple of token ids, is complete; or a `SequenceStop`."""

_UNKNOWN = -1


def is_stopped(stop: Stop, sequence: tuple[int, ...], start: int) -> bool:
    """Return whether a sequence meets a stop condition.

    Args:
        stop: Function of the completion, or a `SequenceStop`, which also receives the prompt.
        sequence: Token ids of prompt and completion.
        start: Length of the prompt.

    Returns:
        Whether the sequence is complete.
    """
    return stop.function(sequence, start) if isinstance(stop, SequenceStop) else stop(sequence[start:])


class StopConditions:
    """Stop conditions of the rows of a batch. Results are cached by prefix.

    Args:
        stop: One condition for all rows, or a mapping from the `settings_id` of rows to a condition.
        tree: The tree of prefixes.
    """

    def __init__(self, stop: Stop | Mapping[int, Stop], tree: NodeTree) -> None:
        self._stop, self._stopped = stop, NodeTable(tree, _UNKNOWN, torch.int8)

    def evaluate(self, rows: "BatchRows") -> Tensor:
        """Return whether each of `rows` meets its stop condition, as a tensor (rows,) bool."""
        stopped, nodes = self._stopped.values, rows.node
        for row in (stopped[nodes] == _UNKNOWN).nonzero()[:, 0].tolist():
            stop = (
                self._stop.get(int(rows.settings_id[row])) if isinstance(self._stop, Mapping) else self._stop
            )
            if stop is None:
                stopped[nodes[row]] = False
                continue
            sequence, start = tuple(rows.tokens[row, : int(rows.lengths[row])].tolist()), int(rows.start[row])
            stopped[nodes[row]] = bool(is_stopped(stop, sequence, start))
        return stopped[nodes] > 0


@dataclass(frozen=True)
class EndConditions:
    """Conditions under which a sequence is complete before it reaches its maximum length.

    Args:
        eos: The end-of-sequence token, if there is one. A sequence that ends with it is complete.
        prompts_go_on: Whether a prompt that ends with `eos` is continued (default: False, it is complete).
        stopping: Stop conditions on completions (default: none).
    """

    eos: int | None = None
    prompts_go_on: bool = False
    stopping: StopConditions | None = None


class BatchRows:
    """Token ids, lengths and prefix ids of the sequences (rows) in a batch.

    Each prefix of a prompt has an integer id (node). Rows with equal prefixes have equal ids, so results can
    be cached by id.

    Args:
        tree: The tree of prefixes, shared by all rows of a run.
        capacity: Largest number of tokens of a row.
        when: Conditions under which rows are complete before their limit.

    Attributes:
        tokens: Token ids (rows, capacity) int64.
        path: Id of every prefix (rows, capacity + 1), from the empty prefix to the whole row.
        lengths: Lengths (rows,) int64 of prompt and completion.
        start: Lengths (rows,) int64 of the prompts.
        limit: Lengths (rows,) int64 at which rows are complete.
        settings_id: Integer (rows,) int64 that identifies the settings of each row, such as its verifier and
            stop condition.
        complete: Whether each row (rows,) is complete.
        prompt_node: Id (rows,) of the prompt if a prompt that ends in `eos` is continued, else -1.
        all_rows: Indices (rows,) of all rows.
    """

    def __init__(self, tree: NodeTree, capacity: int, when: EndConditions) -> None:
        self.tree, self.ends = tree, when
        self.tokens = torch.zeros(0, capacity, dtype=torch.int64)
        self.path = torch.zeros(0, capacity + 1, dtype=torch.int64)
        self.lengths = self.start = self.limit = self.prompt_node = torch.zeros(0, dtype=torch.int64)
        self.settings_id = self.lengths
        self.all_rows = self.lengths
        self.complete, self._completed = torch.zeros(0, dtype=torch.bool), 0

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def node(self) -> Tensor:
        """Node (integer id of the prefix) of each row, (rows,) int64."""
        return self.path.gather(1, self.lengths[:, None])[:, 0]

    @property
    def growing(self) -> Tensor:
        """Indices (n,) of the rows that are not complete."""
        return self.all_rows if not self._completed else (~self.complete).nonzero()[:, 0]

    def take(self, values: Tensor, rows: Tensor) -> Tensor:
        """Select entries of a tensor by row. No copy is made if `rows` is the attribute `all_rows`.

        Args:
            values: A tensor (rows, ...).
            rows: Row indices (n,) int64.

        Returns:
            `values[rows]`, a tensor (n, ...).
        """
        return values if rows is self.all_rows else values[rows]

    def add(
        self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor, settings_id: Tensor | None = None
    ) -> None:
        """Add new sequences below the existing rows.

        Args:
            tokens: Token ids (n, capacity) of n sequences, each a prompt and possibly a completion, padded on the
                right.
            lengths: Number (n,) of tokens of each sequence.
            start: Number (n,) of these tokens that belong to the prompt.
            limit: Length (n,) at which each sequence is complete.
            settings_id: Integer (n,) that identifies the settings of each sequence (default: 0).
        """
        path = self.tree.paths(tokens, lengths, start, settings_id)
        prompts = path.gather(1, start[:, None])[:, 0]
        self.tokens, self.path = torch.cat((self.tokens, tokens)), torch.cat((self.path, path))
        self.lengths = torch.cat((self.lengths, lengths))
        self.start, self.limit = torch.cat((self.start, start)), torch.cat((self.limit, limit))
        self.settings_id = torch.cat(
            (self.settings_id, torch.zeros_like(start) if settings_id is None else settings_id)
        )
        prompt_node = prompts if self.ends.prompts_go_on else torch.full_like(prompts, -1)
        self.prompt_node = torch.cat((self.prompt_node, prompt_node))
        self.all_rows = torch.arange(len(self.lengths))
        complete = are_complete(self.tokens, self.lengths, self.limit, self.ends.eos)
        self.complete = complete & ((self.lengths >= self.limit) | (self.node != self.prompt_node))
        self._completed = int(self.complete.sum())
        self._stop()

    def select(self, rows: Tensor) -> None:
        """Keep only the rows with indices `rows` (n,), in this order."""
        self._take(self, rows)
        self.complete = self.complete[rows]
        self._completed = int(self.complete.sum())

    def children(self, tokens: Tensor, rows: Tensor) -> "BatchRows":
        """Return a temporary batch of rows of this batch, each followed by one more token.

        Args:
            tokens: One token (n,) for each new row.
            rows: Row (n,) of this batch that each new row continues.

        Returns:
            A batch of n rows on the same tree.
        """
        child = BatchRows(self.tree, 0, self.ends)
        child._take(self, rows)
        longest, capacity = int(child.lengths.max()) if len(rows) else 0, child.tokens.shape[1]
        if longest == capacity:  # the copied rows have no room for another token
            child.tokens, child.path = (
                pad(child.tokens, (0, capacity + 1)),
                pad(child.path, (0, capacity + 1)),
            )
        child.advance(child.lengths, child.lengths, tokens)
        return child

    def _take(self, other: "BatchRows", rows: Tensor) -> None:
        """Become a copy of `rows` (n,) of `other`, in this order."""
        self.tokens, self.path, self.lengths = other.tokens[rows], other.path[rows], other.lengths[rows]
        self.start, self.limit, self.prompt_node = (
            other.start[rows],
            other.limit[rows],
            other.prompt_node[rows],
        )
        self.settings_id = other.settings_id[rows]
        self.all_rows = torch.arange(len(rows))

    def continue_from(self, source: Tensor, rows: Tensor) -> None:
        """Overwrite the tokens of some rows by the tokens of other rows. The next call of `advance` sets their lengths.

        Args:
            source: Rows (n,) that are copied.
            rows: Rows (n,) that are overwritten.
        """
        self.tokens[rows], self.path[rows] = self.tokens[source], self.path[source]

    def advance(self, held: Tensor, kept: Tensor, appended: Tensor) -> None:
        """Shorten every row, append at most one token, and determine which rows are complete.

        Args:
            held: Numbers (rows,) of valid tokens before the call.
            kept: Numbers (rows,) of tokens to keep.
            appended: Tokens (rows,) to append, -1 for none.
        """
        self.lengths, self.complete, self._completed = self.tree.advance(
            self.tokens, self.path, self.limit, self.ends.eos, self.prompt_node, held, kept, appended
        )
        self._stop()

    def renumber(self, new: Tensor) -> None:
        """Renumber the stored nodes (prefixes) after nodes have been removed from the tree.

        Args:
            new: New id (nodes,) of each node, -1 for removed nodes.
        """
        self.path, self.prompt_node = renumber_nodes(self.path, new), renumber_nodes(self.prompt_node, new)

    def _stop(self) -> None:
        """Mark the rows that meet their stop condition as complete."""
        if self.ends.stopping is not None:
            self.complete |= self.ends.stopping.evaluate(self)
            self._completed = int(self.complete.sum())
