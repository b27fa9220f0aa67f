"""A run under way: samples that wait, rows that move together, and what is filed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol, cast

import torch
from torch import Tensor
from tqdm import tqdm

from trialogue.inference.walks.engine.budget import Budget
from trialogue.inference.walks.engine.clock import Clock
from trialogue.inference.walks.engine.filed import Filed
from trialogue.inference.walks.engine.groups import Groups
from trialogue.inference.walks.engine.recorder import Recorder
from trialogue.inference.walks.engine.requests import Request, SamplesLeft
from trialogue.inference.walks.judge import Judge
from trialogue.inference.walks.samples import Samples

_ADMIT_SHARE = 8


class Observer(Protocol):
    """Who wants to know how a run goes on while it does."""

    def moved(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Told after every step: the samples (n,) under way, and where the first row of each stands.

        `samples` are places among the run's samples; `tokens` (n, capacity), `lengths` (n,) hold prompt and completion.
        """
        ...

    def filed(self, places: Tensor, samples: Samples) -> None:
        """Told whenever samples are finished: their places (n,) among the run's samples, and the samples.

        Their `total` adds up what they cost themselves.
        """
        ...


class Running:
    """A run under way: samples of `request` wait, at most `room` groups move, finished samples are filed."""

    def __init__(
        self,
        groups: Groups,
        judge: Judge | None,
        request: Request,
        budget: Budget,
        filed: Filed,
        clock: Clock,
        *,
        room: int,
        recorder: Recorder | None,
        observer: Observer | None,
    ) -> None:
        self._groups, self._judge, self._budget, self._filed = groups, judge, budget, filed
        self._request = request
        self._samples, self._room, self._left = len(request.ids), room, SamplesLeft(request)
        self._recorder, self._observer, self._clock = recorder, observer, clock
        self._admitted, self._step = 0, 0

    def finish(self, progress: bool) -> None:
        """Run until every sample is filed."""
        with tqdm(total=self._samples, unit="sample", disable=not progress, leave=False) as bar:
            for places in self.steps():
                bar.update(len(places))

    def steps(self) -> Iterator[Tensor]:
        """Run step by step until every sample is filed; gives the places (n,) of those that each step finished."""
        while self._admitted < self._samples or len(self._groups):
            with torch.inference_mode():
                places = self._moved()
            # Outside of inference mode, so that what is made of them may be written to.
            yield places.clone()

    def _moved(self) -> Tensor:
        """Take one step; returns the places (n,) of the samples that it finished."""
        groups, batch = self._groups, self._groups.batch
        self._admit()
        # A walk that uses nothing of the verifier never asks for one.
        moves, state = groups.step(cast(Judge, self._judge))
        if self._recorder is not None:
            self._recorder.record(self._step, groups, moves)
        groups.apply(moves, state)
        batch.shrink()
        self._step += 1
        self._clock.tick(len(groups))
        if self._observer is not None:
            self._observer.moved(*self.under_way())
        finished = groups.every(moves.done)
        stopped = self._budget.stopped(groups, finished, self._step)
        return self._file(stopped, finished) if bool(stopped.any()) else groups.sample[:0]

    def under_way(self) -> tuple[Tensor, Tensor, Tensor]:
        """The samples (n,) under way, by their places, and where the first row of each stands: tokens and lengths."""
        groups, batch = self._groups, self._groups.batch
        first = groups.first
        return groups.sample, batch.tokens[first], batch.lengths[first]

    def _admit(self) -> None:
        """Let samples that wait begin, where there is room for enough of them."""
        room = min(self._room - len(self._groups), self._samples - self._admitted)
        # Prompts are evaluated together: a few more idle rows cost less than many small evaluations.
        if room and not (len(self._groups) and room * _ADMIT_SHARE < self._room):
            samples = torch.arange(self._admitted, self._admitted + room)
            self._groups.admit(samples, self._step, self._clock.seconds)
            self._admitted += room

    def _file(self, stopped: Tensor, finished: Tensor) -> Tensor:
        """File the groups `stopped` (groups,) bool; forget the prompts that they were the last of; returns places."""
        groups = self._groups
        places = self._filed.file(
            groups,
            stopped.nonzero()[:, 0],
            finished,
            self._judge,
            seconds=self._clock.seconds,
            out_of_steps=self._budget.out_of_steps(groups.admitted, self._step),
        )
        if self._observer is not None:
            with torch.inference_mode(False):
                self._observer.filed(places.clone(), self._filed.samples(places))
        groups.keep((~stopped).nonzero()[:, 0])
        groups.batch.forget(self._left.file(places))
        return places

    def prompt_of(self, place: int) -> tuple[int, int]:
        """The index of the prompt of the sample at `place`, and the prompt's length."""
        return int(self._request.prompt[place]), int(self._request.lengths[place])

    def filed(self, places: Tensor) -> Samples:
        """The samples at `places` (n,), which are finished; their `total` is what they cost themselves."""
        return self._filed.samples(places)

    def samples(self) -> Samples:
        """All samples, which are finished, with the cost and the trace of the whole run."""
        samples = self._filed.samples(torch.arange(self._samples))
        passes = self._groups.batch.meter.passes
        total = samples.total._replace(forward_passes=passes, seconds=self._clock.elapsed)
        return replace(samples, total=total, trace=None if self._recorder is None else self._recorder.trace())
