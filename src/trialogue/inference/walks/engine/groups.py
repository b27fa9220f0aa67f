"""The rows that are under way: one group for each sample, its state, its random stream, and when it was admitted."""

from typing import Any

import torch
from torch import Tensor

from trialogue.inference.walks.batch import Batch
from trialogue.inference.walks.engine.requests import Request
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.moves import Moves
from trialogue.inference.walks.walk import Walk, join, log_weight, take
from trialogue.randomness import Streams


class Groups:
    """Groups of `members` neighbouring rows of `batch`, one group per sample under way.

    `sample` (groups,) is the place of the group's sample among those of the request, `admitted` (groups,) the step of
    the run and `charged` (groups,) the seconds of its clock at which it came, `first_admitted` the least such step.
    """

    def __init__(self, walk: Walk[Any], batch: Batch, request: Request, seed: int) -> None:
        self._walk, self._request, self._seed = walk, request, seed
        self.batch, self.members = batch, walk.rows_per_sample
        self.state: tuple[Tensor, ...] = walk.init(batch)
        self._streams = Streams(seed, torch.zeros(0, dtype=torch.int64))
        self.sample = self.admitted = torch.zeros(0, dtype=torch.int64)
        self.charged = torch.zeros(0, dtype=torch.float64)
        self.first_admitted = 0

    def __len__(self) -> int:
        return self.sample.numel()

    @property
    def first(self) -> Tensor:
        """The first row (groups,) of each group."""
        return torch.arange(0, len(self) * self.members, self.members)

    @property
    def log_weight(self) -> Tensor | None:
        """Log-weights (rows,) float64, if the walk has them."""
        return log_weight(self.state) if self._walk.weighted else None

    def every(self, marked: Tensor) -> Tensor:
        """Of which groups (groups,) all rows are `marked` (rows,) bool."""
        return marked if self.members == 1 else marked.view(-1, self.members).all(1)

    def total(self, counts: Tensor) -> Tensor:
        """Sums (groups,) of `counts` (rows,)."""
        return counts.view(-1, self.members).sum(1)

    def admit(self, samples: Tensor, step: int, seconds: float) -> None:
        """Begin `samples` (n,) at `step`, when the clock shows `seconds`."""
        rows, before = samples.repeat_interleave(self.members), len(self.batch.lengths)
        tokens, lengths = self._request.prompts(rows)
        self.batch.add(tokens, lengths, lengths, self._request.limit[rows], self._request.rule[rows])
        begun = take(self._walk.init(self.batch), torch.arange(before, before + len(rows)))
        self.state = join(self.state, begun)
        member = torch.arange(self.members).repeat(len(samples))
        self._streams.extend(Streams(self._seed, self._request.ids[rows] * self.members + member))
        self.sample = torch.cat((self.sample, samples))
        self.admitted = torch.cat((self.admitted, torch.full_like(samples, step)))
        self.charged = torch.cat((self.charged, self.charged.new_full((len(samples),), seconds)))
        self.first_admitted = int(self.admitted.min())

    def step(self, judge: Judge) -> tuple[Moves, tuple[Tensor, ...]]:
        """What each row does next by the walk, and the state it keeps before it continues from another one."""
        return self._walk.step(self.batch, self.state, judge, self._streams.choose)

    def apply(self, moves: Moves, state: tuple[Tensor, ...]) -> None:
        """Move the rows; their states follow the rows that they continue from."""
        self.batch.apply(moves)
        self.state = take(state, moves.source) if self.members > 1 else state

    def keep(self, groups: Tensor) -> None:
        """Keep `groups` (n,), in that order."""
        rows = (groups[:, None] * self.members + torch.arange(self.members)).flatten()
        self.batch.select(rows)
        self.state = take(self.state, rows)
        self._streams.select(rows)
        self.sample, self.admitted = self.sample[groups], self.admitted[groups]
        self.charged = self.charged[groups]
        self.first_admitted = int(self.admitted.min()) if len(groups) else 0
