"""A run in progress: waiting samples, rows that move together, and finished samples."""

from bisect import bisect_right
from collections import deque
from typing import Generic, Protocol, TypeVar, cast

import torch
from torch import Tensor

from trialogue.samplers.prefix.batch.tree import Root
from trialogue.samplers.prefix.contract.judge import Judge
from trialogue.samplers.prefix.engine.clock import Clock
from trialogue.samplers.prefix.engine.groups import Groups
from trialogue.samplers.prefix.engine.order import Order
from trialogue.samplers.prefix.engine.recorder import TraceRecorder
from trialogue.samplers.prefix.output.samples import Samples, Trace

_ADMIT_SHARE = 8
_ADMIT_TOKENS = 2048
"""Number of prompt tokens admitted per step while other samples wait for their evaluation."""


OrderT = TypeVar("OrderT", bound=Order)


class RunObserver(Protocol):
    """Protocol of objects that a run calls during its steps, for example to show progress."""

    def moved(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Receive the samples in progress. Called after every step.

        Args:
            samples: Indices (n,) of the samples in the run.
            tokens: Prompt and completion (n, capacity) of the first row of each sample.
            lengths: Lengths (n,) of prompt and completion.
        """
        ...

    def filed(self, places: Tensor, samples: Samples) -> None:
        """Receive finished samples. Called after every step in which samples finished.

        Args:
            places: Indices (n,) of the samples in the run.
            samples: The samples. Their `total` is the sum of their costs.
        """
        ...


class Running(Generic[OrderT]):
    """A run in progress, which generates the samples of several requests (orders) as one batch.

    New requests can be added at any time. Each call of `step` advances all samples in progress by one step of the
    sampler.

    Args:
        groups: The samples in progress and their rows in the batch.
        judge: The verifier, if there is one.
        room: Maximum number of samples in progress.
        recorder: Records how rows change (default: none).
        observer: Object whose methods are called during the run (default: none).

    Attributes:
        orders: The orders that are not finished.
    """

    def __init__(
        self,
        groups: Groups,
        judge: Judge | None,
        *,
        room: int,
        recorder: TraceRecorder | None = None,
        observer: RunObserver | None = None,
    ) -> None:
        self._groups, self._judge, self._room = groups, judge, room
        self._recorder, self._observer, self._clock = recorder, observer, Clock()
        self.orders: list[OrderT] = []
        self._waiting = deque[OrderT]()
        self._submitted, self._step = 0, 0

    def submit(self, order: OrderT) -> None:
        """Add the samples of `order` to the queue, from which `step` admits them."""
        order.earliest = self._submitted
        self._submitted += len(order)
        self.orders.append(order)
        self._waiting.append(order)

    def withdraw(self, order: OrderT) -> None:
        """Cancel the unfinished samples of `order`, and remove their rows from the batch."""
        sample = self._groups.sample
        others = (sample < order.earliest) | (sample >= order.earliest + len(order))
        if not bool(others.all()):
            with torch.inference_mode():
                self._groups.keep(others.nonzero()[:, 0])
        if order in self._waiting:
            self._waiting.remove(order)
        self.orders.remove(order)
        order.rounds.close()
        self._groups.batch.forget(self._over(order.roots))

    @property
    def busy(self) -> bool:
        """Whether there are unfinished samples."""
        return bool(self._waiting) or len(self._groups) > 0

    def rest(self) -> None:
        """Exclude the time since the last step, in which the run was idle, from the `seconds` of samples."""
        self._clock.rest()

    def step(self) -> list[tuple[OrderT, Tensor]]:
        """Admit waiting samples to the batch if there is room, and take one step of the sampler.

        Returns:
            Pairs of an order and the indices (n,) in this order of its samples that finished in this step.
        """
        try:
            with torch.inference_mode():
                return self._moved()
        except BaseException:
            # A traceback may keep this run in memory after the error.
            for order in self.orders:
                order.rounds.close()
            raise

    def _moved(self) -> list[tuple[OrderT, Tensor]]:
        groups, batch = self._groups, self._groups.batch
        self._admit()
        # A sampler that does not use the verifier never accesses it.
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
        stopped = groups.stopped(finished, self._step)
        return self._store(stopped, finished) if bool(stopped.any()) else []

    def under_way(self) -> tuple[Tensor, Tensor, Tensor]:
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
        for order in [order for order in self._waiting if order.ready]:
            number = min(room, order.ready)
            if begun:
                needed = order.prompt_tokens(number)
                # At least one prompt begins, even if it exceeds the number of tokens per step.
                left = max(left, int(needed[0])) if len(self._groups) == begun else left
                number = int((needed <= left).sum())
                if not number:
                    return
                left -= int(needed[number - 1])
            self._groups.admit(order, order.admitted(number), self._step, self._clock.seconds)
            room -= number
            if order.begun == len(order):
                self._waiting.remove(order)
            if order.ready or not room:
                return

    def _store(self, stopped: Tensor, finished: Tensor) -> list[tuple[OrderT, Tensor]]:
        """Store the samples of the groups `stopped` (groups,) bool, and remove prompts without unfinished samples."""
        groups, over, stored = self._groups, set[Root](), list[tuple[OrderT, Tensor]]()
        for order, own in self._of_orders(stopped.nonzero()[:, 0]):
            samples = groups.store(order, own, finished, self._judge, self._step, self._clock.seconds)
            if self._observer is not None:
                with torch.inference_mode(False):
                    self._observer.filed(samples + order.earliest, order.samples(samples))
            over |= order.end(samples)
            if not order.left:
                self.orders.remove(order)
            stored.append((order, samples))
        groups.keep((~stopped).nonzero()[:, 0])
        groups.batch.forget(self._over(over))
        return stored

    def _of_orders(self, groups: Tensor) -> list[tuple[OrderT, Tensor]]:
        """Group the indices `groups` (n,) by the request (order) to which they belong."""
        if len(self.orders) == 1:
            return [(self.orders[0], groups)]
        own: dict[OrderT, list[int]] = {}
        for group, place in zip(groups.tolist(), self._groups.sample[groups].tolist(), strict=True):
            own.setdefault(self.order_of(place), []).append(group)
        return [(order, torch.tensor(of_order)) for order, of_order in own.items()]

    def order_of(self, place: int) -> OrderT:
        """Return the order that contains a sample.

        Args:
            place: Index of the sample in the run.
        """
        return self.orders[bisect_right(self.orders, place, key=lambda order: order.earliest) - 1]

    def _over(self, roots: set[Root]) -> set[Root]:
        """Return the `roots` (prompts with their settings) for which no request has unfinished samples."""
        return {root for root in roots if not any(root in order for order in self.orders)}

    @property
    def total(self) -> tuple[int, float]:
        """Number of forward passes of the batch, and seconds since the start."""
        return self._groups.batch.meter.passes, self._clock.elapsed

    @property
    def trace(self) -> Trace | None:
        """The moves so far, if they are recorded."""
        return None if self._recorder is None else self._recorder.trace()
