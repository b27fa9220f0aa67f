"""Class `BatchRun`, which generates the samples of several requests as one batch."""

from bisect import bisect_right
from collections import deque
from typing import Generic, Protocol, TypeVar, cast

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.tree import Root
from trialogue.samplers.prefix.contract.cached_verifier import CachedVerifier
from trialogue.samplers.prefix.engine.clock import Clock
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.recorder import TraceRecorder
from trialogue.samplers.prefix.engine.sample_request import SampleRequest
from trialogue.samplers.prefix.output.samples import Samples, Trace

_ADMIT_SHARE = 8
_ADMIT_TOKENS = 2048
"""Number of prompt tokens admitted per step while other samples wait for their evaluation."""


RequestT = TypeVar("RequestT", bound=SampleRequest)


class RunObserver(Protocol):
    """Protocol of objects that are notified while a run generates samples, for example to show progress."""

    def on_step(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Receive the samples in progress. Called after every step.

        Args:
            samples: Indices (n,) of the samples in the run.
            tokens: Prompt and completion (n, capacity) of the first row of each sample.
            lengths: Lengths (n,) of prompt and completion.
        """
        ...

    def on_finished(self, places: Tensor, samples: Samples) -> None:
        """Receive finished samples. Called after every step in which samples finished.

        Args:
            places: Indices (n,) of the samples in the run.
            samples: The samples. Their `total` is the sum of their costs.
        """
        ...


class BatchRun(Generic[RequestT]):
    """Generates the samples of several requests as one batch.

    New requests can be added at any time. Each call of `step` advances all samples in progress by one step of the
    sampler.

    Args:
        groups: The samples in progress and their rows in the batch.
        verifier: The verifier, if there is one.
        room: Maximum number of samples in progress at a time.
        recorder: Records how rows change (default: none).
        observer: Object whose methods are called during the run (default: none).

    Attributes:
        requests: The requests that are not finished.
    """

    def __init__(
        self,
        groups: Groups,
        verifier: CachedVerifier | None,
        *,
        room: int,
        recorder: TraceRecorder | None = None,
        observer: RunObserver | None = None,
    ) -> None:
        self._groups, self._verifier, self._room = groups, verifier, room
        self._recorder, self._observer, self._clock = recorder, observer, Clock()
        self.requests: list[RequestT] = []
        self._waiting = deque[RequestT]()
        self._submitted, self._step = 0, 0

    def submit(self, request: RequestT) -> None:
        """Add the samples of `request` to the queue, from which `step` admits them."""
        request.earliest = self._submitted
        self._submitted += len(request)
        self.requests.append(request)
        self._waiting.append(request)

    def withdraw(self, request: RequestT) -> None:
        """Cancel the unfinished samples of `request`, and remove their rows from the batch."""
        sample = self._groups.sample
        others = (sample < request.earliest) | (sample >= request.earliest + len(request))
        if not bool(others.all()):
            with torch.inference_mode():
                self._groups.keep(others.nonzero()[:, 0])
        if request in self._waiting:
            self._waiting.remove(request)
        self.requests.remove(request)
        request.rounds.close()
        self._groups.batch.forget(self._select_finished_roots(request.roots))

    @property
    def busy(self) -> bool:
        """Whether there are unfinished samples."""
        return bool(self._waiting) or len(self._groups) > 0

    def exclude_idle_time(self) -> None:
        """Exclude the time since the last step, in which the run was idle, from the `seconds` of samples."""
        self._clock.exclude_idle_time()

    def step(self) -> list[tuple[RequestT, Tensor]]:
        """Admit waiting samples to the batch if there is room, and take one step of the sampler.

        Returns:
            Pairs of a request and the indices (n,), within this request, of its samples that finished in this step.
        """
        try:
            with torch.inference_mode():
                return self._take_step()
        except BaseException:
            # A traceback may keep this run in memory after the error.
            for request in self.requests:
                request.rounds.close()
            raise

    def _take_step(self) -> list[tuple[RequestT, Tensor]]:
        groups, batch = self._groups, self._groups.batch
        self._admit()
        # A sampler that does not use the verifier never accesses it.
        moves, state = groups.step(cast(CachedVerifier, self._verifier))
        if self._recorder is not None:
            self._recorder.record(self._step, groups, moves)
        groups.apply(moves, state)
        batch.shrink()
        self._step += 1
        self._clock.tick(len(groups))
        if self._observer is not None:
            self._observer.on_step(*self.samples_in_progress())
        finished = groups.every(moves.done)
        stopped = groups.stopped(finished, self._step)
        return self._store(stopped, finished) if bool(stopped.any()) else []

    def samples_in_progress(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the tokens of the samples in progress (samples that have started and not finished).

        Returns:
            Indices (n,) int64 of these samples in the run; the token ids (n, capacity) of the prompt and completion so
            far; and the lengths (n,) of these sequences. If a sample has several candidate sequences, the first one is
            returned.
        """
        groups, batch = self._groups, self._groups.batch
        first = groups.first
        return groups.sample, batch.tokens[first], batch.lengths[first]

    def _admit(self) -> None:
        """Move waiting samples into the batch, if there is enough room. Bounds the number of prompt tokens per step."""
        room = self._room - len(self._groups)
        # Prompts are evaluated together, because a few idle rows cost less than many small evaluations.
        if not self._waiting or (len(self._groups) and room * _ADMIT_SHARE < self._room):
            return
        left, begun = _ADMIT_TOKENS, len(self._groups)
        for request in [request for request in self._waiting if request.ready]:
            number = min(room, request.ready)
            if begun:
                needed = request.prompt_tokens(number)
                # At least one prompt begins, even if it exceeds the number of tokens per step.
                left = max(left, int(needed[0])) if len(self._groups) == begun else left
                number = int((needed <= left).sum())
                if not number:
                    return
                left -= int(needed[number - 1])
            self._groups.admit(request, request.take_next_samples(number), self._step, self._clock.seconds)
            room -= number
            if request.num_admitted == len(request):
                self._waiting.remove(request)
            if request.ready or not room:
                return

    def _store(self, stopped: Tensor, finished: Tensor) -> list[tuple[RequestT, Tensor]]:
        """Store the results of the groups marked in `stopped` (groups,) bool, and free prompts that are finished."""
        groups, over, stored = self._groups, set[Root](), list[tuple[RequestT, Tensor]]()
        for request, own in self._group_by_request(stopped.nonzero()[:, 0]):
            samples = groups.store(request, own, finished, self._verifier, self._step, self._clock.seconds)
            if self._observer is not None:
                with torch.inference_mode(False):
                    self._observer.on_finished(samples + request.earliest, request.samples(samples))
            over |= request.end(samples)
            if not request.left:
                self.requests.remove(request)
            stored.append((request, samples))
        groups.keep((~stopped).nonzero()[:, 0])
        groups.batch.forget(self._select_finished_roots(over))
        return stored

    def _group_by_request(self, groups: Tensor) -> list[tuple[RequestT, Tensor]]:
        """Group the indices `groups` (n,) by the request to which they belong."""
        if len(self.requests) == 1:
            return [(self.requests[0], groups)]
        own: dict[RequestT, list[int]] = {}
        for group, place in zip(groups.tolist(), self._groups.sample[groups].tolist(), strict=True):
            own.setdefault(self.find_request(place), []).append(group)
        return [(request, torch.tensor(of_request)) for request, of_request in own.items()]

    def find_request(self, place: int) -> RequestT:
        """Return the request that contains a sample.

        Args:
            place: Index of the sample in the run.
        """
        return self.requests[bisect_right(self.requests, place, key=lambda request: request.earliest) - 1]

    def _select_finished_roots(self, roots: set[Root]) -> set[Root]:
        """Return those of `roots` (prompts with their settings) of which no request has unfinished samples."""
        return {root for root in roots if not any(root in request for request in self.requests)}

    @property
    def total(self) -> tuple[int, float]:
        """Number of forward passes of the batch, and seconds since the start."""
        return self._groups.batch.meter.passes, self._clock.elapsed

    @property
    def trace(self) -> Trace | None:
        """All tokens that were appended and removed so far, or None if they are not recorded."""
        return None if self._recorder is None else self._recorder.trace()
