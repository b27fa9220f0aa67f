"""The batch of sequences that the engine moves."""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.indices import require_int64
from trialogue.oracles import Autoregressive, as_context, as_oracle
from trialogue.samplers.prefix.batch import kernels
from trialogue.samplers.prefix.batch.evaluations import Evaluations
from trialogue.samplers.prefix.batch.knowledge import Bill, Knowledge, Meter
from trialogue.samplers.prefix.batch.rows import BatchRows, Ends, Stop, Stopping
from trialogue.samplers.prefix.batch.scores import Scores
from trialogue.samplers.prefix.batch.tree import Root
from trialogue.samplers.prefix.batch.view import View
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.truncation import Truncated

DEFAULT_MEMORY = 1 << 16
_VISITED, _LEAST_VISITED = 16, 1 << 16  # prefixes in the tree for each that is remembered, and in any case


class Batch(View):
    """BatchRows that the engine adds, moves and removes, on up to `slots` storage rows of `capacity` tokens.

    `layers` are those whose hidden states are asked for, `memory` the number of nodes that are remembered. With
    `scored` the oracle's log-probabilities, before truncation, are accumulated along each completion. What holds for
    the rows under one rule alone is given by rule: how they `stop`, and `truncations` of the oracle's distributions.
    """

    def __init__(
        self,
        oracle: Autoregressive,
        slots: int,
        capacity: int,
        *,
        layers: tuple[int, ...] = (),
        memory: int = DEFAULT_MEMORY,
        stop: Stop | Mapping[int, Stop] | None = None,
        scored: bool = False,
        truncations: Mapping[int, Truncated] | None = None,
    ) -> None:
        oracle = as_oracle(oracle)
        self._most_visited = max(_LEAST_VISITED, _VISITED * memory)
        knowledge, bill = Knowledge(oracle.vocab_size, memory), Bill(Meter(0), torch.arange(0))
        stopping = None if stop is None else Stopping(stop, knowledge.tree)
        rows = BatchRows(knowledge.tree, capacity, Ends(oracle.eos, oracle.prompts_go_on, stopping))
        context = as_context(oracle.open(slots, capacity, layers))
        evaluated = torch.full((slots, capacity + 1), -1)
        evaluations = Evaluations(lambda: context, evaluated, rows.lengths, rows, knowledge, bill)
        scores = Scores(capacity) if scored else None
        scratch_rows = max(slots, oracle.batch_size)
        super().__init__(
            oracle.vocab_size, rows, evaluations, knowledge, bill, scratch_rows, scores, truncations
        )

    @property
    def log_prob(self) -> Tensor:
        """Log-probabilities (rows,) of the completions, before truncation; NaN where they were not asked for."""
        assert self._scores is not None, "open the batch with scored=True"
        return self._scores.values.gather(1, self._rows.lengths[:, None])[:, 0]

    def token_log_probs(self, rows: Tensor) -> Tensor:
        """Log-probabilities (n, capacity) of the tokens of the completions of `rows` (n,), as `log_prob`; else 0."""
        assert self._scores is not None, "open the batch with scored=True"
        scores = self._scores.values[rows].diff(dim=1)
        places = torch.arange(scores.shape[1])
        within = (places >= self.start[rows, None]) & (places < self.lengths[rows, None])
        return torch.where(within, scores, 0.0)

    def add(
        self, tokens: Tensor, lengths: Tensor, start: Tensor, limit: Tensor, rule: Tensor | None = None
    ) -> None:
        """Append rows: sequences `tokens` (n, capacity) of `lengths` (n,) whose first `start` are the prompt.

        `rule` (n,) is which of the run's rules each is under, by default the first.
        """
        self._rows.add(tokens, lengths, start, limit, rule)
        self._evaluations.add(len(tokens))
        if self._scores is not None:
            self._scores.add(len(tokens))
        self.meter.extend(len(tokens))
        self._bill.owner = self._rows.everything

    def select(self, rows: Tensor) -> None:
        """Keep `rows`, in that order; the storage of the others is free for new ones."""
        self._rows.select(rows)
        self._evaluations.select(rows)
        if self._scores is not None:
            self._scores.select(rows)
        self.meter.select(rows)
        self._bill.owner = self._rows.everything

    def forget(self, roots: Iterable[Root]) -> None:
        """Forget all that is known below `roots`, of which there are no rows and will be none."""
        self._renumber(self.knowledge.tree.forget(roots))

    def shrink(self) -> None:
        """Forget prefixes where more are known than there is memory for: none that rows stand on, leaves first."""
        if self.knowledge.tree.size > self._most_visited:
            path = self._rows.path
            held = torch.arange(path.shape[1]) <= self._rows.lengths[:, None]
            self._renumber(self.knowledge.tree.shrink(self._most_visited, path[held]))

    def _renumber(self, new: Tensor | None) -> None:
        """Nodes have `new` ids (nodes,), -1 where they were forgotten; or, if None, those that they had."""
        if new is not None:
            for answers in self.knowledge.answers.values():
                answers.renumber(new)
            for part in (self.knowledge.memory, self.knowledge.weighed, self._rows, self._evaluations):
                part.renumber(new)

    def apply(self, moves: Moves) -> None:
        """Move the rows: continue from their sources, cut, append.

        Raises `InputError` for moves of other rows than these, or of tokens that do not exist or have no room.
        """
        source, held = moves.source, self._rows.lengths
        for field in ("source", "length", "token"):
            hint = f"give one number in int64 for each of the {len(held)} rows"
            require_int64(f"moves.{field}", getattr(moves, field), (len(held),), hint)
        if not torch.equal(source, self._rows.everything):
            place = kernels.first_misplaced(source.numpy(), moves.length.numpy(), held.numpy())
            if place >= 0:
                wrong = (int(source[place]), int(moves.length[place]))
                hint = (
                    f"row {place} continues from a row of the batch, and from no more tokens than that holds"
                )
                raise InputError("moves", wrong, hint)
            moved, held = (source != self._rows.everything).nonzero()[:, 0], held[source]
            self._continue_from(source[moved], moved, moves.length[moved])
        self._rows.advance(held, moves.length, moves.token)
        if self._scores is not None:
            self._scores.apply(moves)

    def _continue_from(self, source: Tensor, rows: Tensor, lengths: Tensor) -> None:
        self._rows.continue_from(source, rows)
        if self._scores is not None:
            self._scores.continue_from(source, rows)
        self._evaluations.continue_from(source, rows, lengths)
