"""The samples in progress, each with its rows, state, random stream and budgets."""

import math
from typing import Any, cast

import torch
from torch import Tensor

from trialogue.randomness import Streams
from trialogue.samplers.prefix.batch import Batch
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.contract.moves import Moves
from trialogue.samplers.prefix.contract.sampler import Sampler, concatenate_states, log_weight, select_rows
from trialogue.samplers.prefix.engine.sample_request import SampleRequest

_UNBOUNDED = torch.iinfo(torch.int64).max


class Groups:
    """The samples in progress. Each has one or several neighboring rows (sequences) of the batch, its group.

    Args:
        sampler: The sampler that moves the rows.
        batch: The batch, without rows.

    Attributes:
        members: Number of rows of each sample.
        state: State of the sampler, one entry per row.
        sample: Index (groups,) of each sample in the run.
        admitted_at: Clock reading (groups,) float64 in seconds at which each sample was added to the batch.
        deadline: Step (groups,) of the run after which each sample has used up its `max_steps`.
        first_deadline: Smallest deadline.
        most_queries: Maximum number (groups,) of model calls of each sample.
        any_bounded: Whether the model calls of any sample are bounded.
    """

    def __init__(self, sampler: Sampler[Any], batch: Batch) -> None:
        self._sampler, self.batch, self.members = sampler, batch, sampler.rows_per_sample
        self.state: tuple[Tensor, ...] = sampler.init(batch)
        self._streams = Streams(0, torch.zeros(0, dtype=torch.int64))
        self.sample = self.deadline = self.most_queries = torch.zeros(0, dtype=torch.int64)
        self.admitted_at = torch.zeros(0, dtype=torch.float64)
        self.first_deadline, self.any_bounded = 0, False
        batch.waited = torch.zeros(0, dtype=torch.int64)

    def __len__(self) -> int:
        return self.sample.numel()

    @property
    def first(self) -> Tensor:
        """Index (groups,) of the first row of each group, which holds the output of the sample."""
        return torch.arange(0, len(self) * self.members, self.members)

    @property
    def log_weight(self) -> Tensor | None:
        """Log-weights (rows,) float64, or None if the sampler has no importance weights."""
        return log_weight(self.state) if self._sampler.weighted else None

    def every(self, marked: Tensor) -> Tensor:
        """Return, for each group, whether all of its rows are marked.

        Args:
            marked: Whether each row (rows,) bool is marked.

        Returns:
            Whether each group (groups,) bool is marked.
        """
        return marked if self.members == 1 else marked.view(-1, self.members).all(1)

    def total(self, counts: Tensor) -> Tensor:
        """Return the sums (groups,) over the rows of each group of `counts` (rows,)."""
        return counts.view(-1, self.members).sum(1)

    def admit(self, request: SampleRequest, samples: Tensor, step: int, seconds: float) -> None:
        """Start new samples: add their prompts to the batch, and set up their random streams and budgets.

        Args:
            request: The request that contains the samples.
            samples: Indices (n,) of the samples in the request.
            step: Number of steps of the run so far.
            seconds: Current clock reading in seconds.
        """
        rows, before = samples.repeat_interleave(self.members), len(self.batch.lengths)
        tokens, lengths = request.prompts(rows, self.batch.tokens.shape[1])
        self.batch.add(tokens, lengths, lengths, request.limit[rows], request.settings_id[rows])
        begun = select_rows(self._sampler.init(self.batch), torch.arange(before, before + len(rows)))
        self.state = concatenate_states([self.state, request.rounds.starting_states(samples, begun)])
        member = torch.arange(self.members).repeat(len(samples))
        self._streams.extend(Streams(request.seed, request.ids[rows] * self.members + member))
        self.sample = torch.cat((self.sample, request.earliest + samples))
        self.deadline = torch.cat(
            (self.deadline, torch.full_like(samples, min(step + request.max_steps, _UNBOUNDED)))
        )
        most = _UNBOUNDED if request.max_queries is None else min(request.max_queries, _UNBOUNDED)
        self.most_queries = torch.cat((self.most_queries, torch.full_like(samples, most)))
        self.admitted_at = torch.cat((self.admitted_at, self.admitted_at.new_full((len(samples),), seconds)))
        self._note_bounds()

    def stopped(self, finished: Tensor, step: int) -> Tensor:
        """Return which samples end, because they are finished or have used up their steps or model calls.

        Args:
            finished: Whether the sampler has finished each group (groups,) bool.
            step: Number of steps of the run so far.

        Returns:
            Whether each group (groups,) bool stops.
        """
        if step >= self.first_deadline:
            finished = finished | (step >= self.deadline)
        if self.any_bounded:
            queries = self.total(self.batch.meter.queries)
            # A group whose rows are all complete only selects one of them, which takes no queries.
            has_open_row = ~self.every(self.batch.complete) | (self.members == 1)
            finished = finished | ((queries >= self.most_queries) & has_open_row)
        return finished

    def step(self, verifier: CachedVerifier) -> tuple[Moves, tuple[Tensor, ...]]:
        """Call the sampler for one step, and return its moves and its new state.

        Args:
            verifier: Values of the verifier.

        Returns:
            The moves of the rows, and the new states, before rows take the state of their source.
        """
        return self._sampler.step(self.batch, self.state, verifier, self._streams.choose)

    def apply(self, moves: Moves, state: tuple[Tensor, ...]) -> None:
        """Apply the moves of one step to the rows and to the states of the sampler.

        Args:
            moves: The moves.
            state: The states that the sampler returned with the moves.
        """
        waiting = self.every(cast(Tensor, self.batch.waited) > 0) & (self.deadline < _UNBOUNDED)
        self.deadline += waiting
        self.batch.apply(moves)
        self.state = select_rows(state, moves.source) if self.members > 1 else state

    def store(
        self,
        request: SampleRequest,
        stopped: Tensor,
        finished: Tensor,
        verifier: CachedVerifier | None,
        step: int,
        seconds: float,
    ) -> Tensor:
        """Write the results of finished samples to their request.

        The verifier decides which complete samples are accepted.

        Args:
            request: The request that contains the samples.
            stopped: Indices (n,) of the groups whose samples are stored. A group is the rows of one sample.
            finished: Whether each group (groups,) ended without exceeding a budget.
            verifier: The verifier, if there is one.
            step: Number of steps of the run so far.
            seconds: Current clock reading in seconds.

        Returns:
            Indices (n,) of the samples in the request.
        """
        batch, samples, first = self.batch, self.sample[stopped] - request.earliest, self.first[stopped]
        columns, complete, ended = request.columns, batch.complete[first], finished[stopped]
        if (log_weight := self.log_weight) is not None:
            columns["log_weight"][samples] = log_weight[first]
        # A group of several rows that exceeds its budget has not selected its output yet.
        final = ended | (self.members == 1 and self._sampler.is_final_when_complete)
        accepted = complete & final & (columns["log_weight"][samples] > -math.inf)
        judged = accepted.nonzero()[:, 0]
        if verifier is not None and request.judged and len(judged):
            accepted[judged] = verifier.values(first[judged]) > 0
        judged = accepted.nonzero()[:, 0]
        if verifier is not None and verifier.has_targets and not self._sampler.uses_targets and len(judged):
            log_targets = verifier.log_targets(first[judged])
            columns["log_weight"][samples[judged]] += log_targets
            accepted[judged] = log_targets > -math.inf
        last = select_rows(self.state, first)
        request.rounds.end(samples, last)
        remarks = zip(samples.tolist(), self._sampler.remarks(last), strict=False)
        request.remarks |= {sample: remark for sample, remark in remarks if remark is not None}
        columns["accepted"][samples] = accepted
        columns["lengths"][samples] = lengths = batch.lengths[first]
        within = torch.arange(request.capacity) < lengths[:, None]
        columns["tokens"][samples] = batch.tokens[first, : request.capacity] * within
        for name, counts in batch.meter.items():
            columns[name][samples] = self.total(counts)[stopped]
        columns["log_prob"][samples] = batch.log_prob[first]
        if "token_log_probs" in columns:
            columns["token_log_probs"][samples] = batch.token_log_probs(first)[:, : request.capacity]
        if request.raised:
            failed = ended & ~complete
            for place in (~accepted).nonzero()[:, 0].tolist():
                row = int(first[place])
                sequence, start = batch.tokens[row, : int(batch.lengths[row])], int(batch.start[row])
                raised = request.raised[int(batch.settings_id[row])]
                request.errors[int(samples[place])] = raised.of(sequence, start, bool(failed[place]))
        columns["seconds"][samples] = seconds - self.admitted_at[stopped]
        bounded = torch.where(accepted, 0, torch.where(step >= self.deadline[stopped], 2, 3))
        request.ended[samples] = torch.where(ended, torch.where(complete, 0, 1), bounded)
        return samples

    def keep(self, groups: Tensor) -> None:
        """Keep only the samples with the group indices `groups` (n,), in this order, and remove all other rows."""
        rows = (groups[:, None] * self.members + torch.arange(self.members)).flatten()
        self.batch.select(rows)
        self.state = select_rows(self.state, rows)
        self._streams.select(rows)
        self.sample, self.admitted_at = self.sample[groups], self.admitted_at[groups]
        self.deadline, self.most_queries = self.deadline[groups], self.most_queries[groups]
        self._note_bounds()

    def _note_bounds(self) -> None:
        if len(self):
            self.first_deadline = int(self.deadline.min())
            self.any_bounded = int(self.most_queries.min()) < _UNBOUNDED
