"""The rows that are under way: one group for each sample, its state, its random stream, and when it was admitted."""

import math
from typing import Any

import torch
from torch import Tensor

from trialogue.randomness import Streams
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import Sampler, join, log_weight, take
from trialogue.samplers.prefix.engine.order import Order

_UNBOUNDED = torch.iinfo(torch.int64).max


class Groups:
    """Groups of `members` neighbouring rows of `batch`, one group per sample under way.

    `sample` (groups,) is the place of the group's sample among those of the run, `charged` (groups,) what the clock
    showed when it came, `deadline` (groups,) the step of the run at which its moves are used up, `first_deadline` the
    least of these; `most_queries` (groups,) is how many it may ask, and `any_bounded` says whether any may not ask on.
    """

    def __init__(self, sampler: Sampler[Any], batch: Batch) -> None:
        self._walk, self.batch, self.members = sampler, batch, sampler.rows_per_sample
        self.state: tuple[Tensor, ...] = sampler.init(batch)
        self._streams = Streams(0, torch.zeros(0, dtype=torch.int64))
        self.sample = self.deadline = self.most_queries = torch.zeros(0, dtype=torch.int64)
        self.charged = torch.zeros(0, dtype=torch.float64)
        self.first_deadline, self.any_bounded = 0, False

    def __len__(self) -> int:
        return self.sample.numel()

    @property
    def first(self) -> Tensor:
        """The first row (groups,) of each group."""
        return torch.arange(0, len(self) * self.members, self.members)

    @property
    def log_weight(self) -> Tensor | None:
        """Log-weights (rows,) float64, if the sampler has them."""
        return log_weight(self.state) if self._walk.weighted else None

    def every(self, marked: Tensor) -> Tensor:
        """Of which groups (groups,) all rows are `marked` (rows,) bool."""
        return marked if self.members == 1 else marked.view(-1, self.members).all(1)

    def total(self, counts: Tensor) -> Tensor:
        """Sums (groups,) of `counts` (rows,)."""
        return counts.view(-1, self.members).sum(1)

    def admit(self, order: Order, samples: Tensor, step: int, seconds: float) -> None:
        """Begin `samples` (n,) of `order` at `step`, when the clock shows `seconds`."""
        rows, before = samples.repeat_interleave(self.members), len(self.batch.lengths)
        tokens, lengths = order.prompts(rows, self.batch.tokens.shape[1])
        self.batch.add(tokens, lengths, lengths, order.limit[rows], order.rule[rows])
        begun = take(self._walk.init(self.batch), torch.arange(before, before + len(rows)))
        self.state = join(self.state, begun)
        member = torch.arange(self.members).repeat(len(samples))
        self._streams.extend(Streams(order.seed, order.ids[rows] * self.members + member))
        self.sample = torch.cat((self.sample, order.earliest + samples))
        self.deadline = torch.cat(
            (self.deadline, torch.full_like(samples, min(step + order.max_steps, _UNBOUNDED)))
        )
        most = _UNBOUNDED if order.max_queries is None else min(order.max_queries, _UNBOUNDED)
        self.most_queries = torch.cat((self.most_queries, torch.full_like(samples, most)))
        self.charged = torch.cat((self.charged, self.charged.new_full((len(samples),), seconds)))
        self._note_bounds()

    def stopped(self, finished: Tensor, step: int) -> Tensor:
        """Which groups (groups,) stop after `step` steps: those that have `finished`, or used up their budget."""
        if step >= self.first_deadline:
            finished = finished | (step >= self.deadline)
        if self.any_bounded:
            queries = self.total(self.batch.meter.queries)
            # A group whose rows are all complete has but to choose among them, which takes no more queries.
            asking = ~self.every(self.batch.complete) | (self.members == 1)
            finished = finished | ((queries >= self.most_queries) & asking)
        return finished

    def step(self, judge: Judge) -> tuple[Moves, tuple[Tensor, ...]]:
        """What each row does next by the sampler, and the state it keeps before it continues from another one."""
        return self._walk.step(self.batch, self.state, judge, self._streams.choose)

    def apply(self, moves: Moves, state: tuple[Tensor, ...]) -> None:
        """Move the rows; their states follow the rows that they continue from."""
        self.batch.apply(moves)
        self.state = take(state, moves.source) if self.members > 1 else state

    def store(
        self, order: Order, stopped: Tensor, finished: Tensor, judge: Judge | None, step: int, seconds: float
    ) -> Tensor:
        """Store the samples of stopped groups in `order`. The verifier has the last word on which are accepted.

        Args:
            order: The order that the groups belong to.
            stopped: Groups (n,) whose samples are stored.
            finished: Which groups (groups,) ended by themselves.
            judge: The verifier, if there is one.
            step: Number of steps of the run so far.
            seconds: What the clock shows.

        Returns:
            The places (n,) of the samples among those of the order.
        """
        batch, samples, first = self.batch, self.sample[stopped] - order.earliest, self.first[stopped]
        columns, complete, ended = order.columns, batch.complete[first], finished[stopped]
        if (log_weight := self.log_weight) is not None:
            columns["log_weight"][samples] = log_weight[first]
        # A group that was stopped has not chosen its output yet.
        accepted = complete & (ended | (self.members == 1)) & (columns["log_weight"][samples] > -math.inf)
        judged = accepted.nonzero()[:, 0]
        if judge is not None and order.judged and len(judged):
            accepted[judged] = judge.values(first[judged]) > 0
        columns["accepted"][samples] = accepted
        columns["lengths"][samples] = lengths = batch.lengths[first]
        within = torch.arange(order.capacity) < lengths[:, None]
        columns["tokens"][samples] = batch.tokens[first, : order.capacity] * within
        for name, counts in batch.meter.items():
            columns[name][samples] = self.total(counts)[stopped]
        columns["log_prob"][samples] = batch.log_prob[first]
        if "token_log_probs" in columns:
            columns["token_log_probs"][samples] = batch.token_log_probs(first)[:, : order.capacity]
        if order.raised:
            failed = ended & ~complete
            for place in (~accepted).nonzero()[:, 0].tolist():
                row = int(first[place])
                sequence, start = batch.tokens[row, : int(batch.lengths[row])], int(batch.start[row])
                raised = order.raised[int(batch.rule[row])]
                order.errors[int(samples[place])] = raised.of(sequence, start, bool(failed[place]))
        columns["seconds"][samples] = seconds - self.charged[stopped]
        bounded = torch.where(accepted, 0, torch.where(step >= self.deadline[stopped], 2, 3))
        order.ended[samples] = torch.where(ended, torch.where(complete, 0, 1), bounded)
        return samples

    def keep(self, groups: Tensor) -> None:
        """Keep `groups` (n,), in that order."""
        rows = (groups[:, None] * self.members + torch.arange(self.members)).flatten()
        self.batch.select(rows)
        self.state = take(self.state, rows)
        self._streams.select(rows)
        self.sample, self.charged = self.sample[groups], self.charged[groups]
        self.deadline, self.most_queries = self.deadline[groups], self.most_queries[groups]
        self._note_bounds()

    def _note_bounds(self) -> None:
        if len(self):
            self.first_deadline = int(self.deadline.min())
            self.any_bounded = int(self.most_queries.min()) < _UNBOUNDED
