"""Rounds of samples: each round of samples of a prompt starts from the state that earlier rounds have reached."""

from collections.abc import Sequence
from typing import Any, Protocol
from weakref import ref

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.samplers.prefix.contract.sampler import Sampler, concatenate_states, select_rows


class SharedState(Protocol):
    """Protocol of objects that pass states from finished samples of a prompt to later samples of this prompt."""

    @property
    def ended(self) -> int:
        """Number of samples that have ended so far."""
        ...

    @property
    def limit(self) -> int | None:
        """Total number of samples that may have started by now. None if all may start."""
        ...

    def begin(self, initial: Any) -> Any:
        """Return the state in which a sample begins.

        Args:
            initial: Initial state of the sampler, one row.
        """
        ...

    def end(self, number: int, state: Any) -> None:
        """Store the last state of a sample.

        Args:
            number: Number of the sample among all samples that share this object.
            state: The state, one row.
        """
        ...


class PromptRounds:
    """Runs the samples of one prompt in rounds. Each round starts from what the sampler learned in all earlier rounds.

    Pass the same object to several successive calls of `generate` to continue the rounds. One call must
    finish before the next one uses the object. Store `tensors` and `finished` in a file to continue later.

    Args:
        sampler: The sampler, whose `round_size` is the number of samples per round.
        finished: Number of finished rounds (default: 0).
        tensors: State after these rounds, as returned by the method `tensors` (default: the initial state).
    """

    def __init__(
        self, sampler: Sampler[Any], finished: int = 0, tensors: dict[str, Tensor] | None = None
    ) -> None:
        self._sampler, self._size = sampler, sampler.round_size
        self._finished, self._tensors, self._start = finished, tensors, None
        self._ends: dict[int, Any] = {}
        self._user: ref[Rounds] | None = None

    @property
    def finished(self) -> int:
        """Number of finished rounds."""
        return self._finished + (len(self._ends) == self._size)

    @property
    def ended(self) -> int:
        """Number of samples that have ended, in this and all earlier rounds."""
        return self._finished * (self._size or 0) + len(self._ends)

    @property
    def limit(self) -> int | None:
        """Total number of samples that may have started by now. None if all may start."""
        return None if self._size is None else (self.finished + 1) * self._size

    def reserve(self, user: "Rounds") -> None:
        """Reserve this object for the samples of one request until they are finished or the request is closed.

        States of an unfinished round that an aborted request has left are discarded.

        Args:
            user: The rounds of the request.

        Raises:
            InputError: If samples of another request are unfinished.
        """
        other = None if self._user is None else self._user()
        if other is not None and other.num_unfinished:
            hint = (
                f"{other.num_unfinished} unfinished samples of another request use this object. Finish or withdraw "
                "them first, or give each request its own object"
            )
            raise InputError("shared", "PromptRounds", hint)
        self._user = ref(user)
        first = self._finished * (self._size or 0)
        if sorted(self._ends) != list(range(first, first + len(self._ends))):
            self._ends.clear()

    def begin(self, initial: Any) -> Any:
        """Return the starting state of a sample in the current round.

        Args:
            initial: Initial state of the sampler, one row.
        """
        if self._start is None:
            restore = self._sampler.state_from_tensors
            self._start = initial if self._tensors is None else restore(self._tensors, initial)
        self._merge()
        return self._start

    def end(self, number: int, state: Any) -> None:
        """Store the final state of a sample of the current round.

        Args:
            number: Number of the sample, counted from the first sample of the first round.
            state: The state, one row.
        """
        self._ends[number] = state

    def tensors(self) -> dict[str, Tensor]:
        """Return the merged state of all finished rounds as tensors by name. At least one sample must have begun."""
        self._merge()
        return self._sampler.state_tensors(self._start)

    def clear(self) -> None:
        """Free the memory of all states. No further sample may begin."""
        self._tensors = self._start = None
        self._ends.clear()

    def _merge(self) -> None:
        if len(self._ends) == self._size:
            ends = [self._ends[number] for number in sorted(self._ends)]
            self._start = self._sampler.merged(self._start, concatenate_states(ends))
            self._finished += 1
            self._ends.clear()


class Rounds:
    """Decides which samples of a request may begin, and passes states from finished samples to later ones.

    Args:
        sampler: The sampler.
        prompt: Index (n,) of each sample's prompt.
        shared: Object that passes states between the samples of each prompt. Several prompts may have the
            same object (default: a new object of `PromptRounds` for each prompt).

    Attributes:
        ready: Indices (k,) of the samples that may begin or have begun, in the order in which they begin.
        num_unfinished: Number of samples that have not ended, 0 after `close`.

    Raises:
        InputError: If another request is using one of the shared states and allows no second one.
    """

    def __init__(
        self, sampler: Sampler[Any], prompt: Tensor, shared: Sequence[SharedState] | None = None
    ) -> None:
        self.ready, self.num_unfinished = torch.arange(len(prompt)), len(prompt)
        self._shared: list[SharedState] = []
        if shared is None and sampler.round_size is None:
            return
        if shared is None:
            shared = [PromptRounds(sampler) for _ in range(int(prompt.max()) + 1)]
        for state in set(shared):
            if isinstance(state, PromptRounds):
                state.reserve(self)
        self._shared = [shared[index] for index in prompt.tolist()]
        self._waiting: dict[SharedState, list[int]] = {}
        self._numbers: list[int] = []
        for sample, state in enumerate(self._shared):
            waiting = self._waiting.setdefault(state, [])
            self._numbers.append(state.ended + len(waiting))
            waiting.append(sample)
        self.ready = torch.tensor(
            [one for state in self._waiting for one in self._release_waiting(state)], dtype=torch.int64
        )

    def _release_waiting(self, state: SharedState) -> list[int]:
        """Remove the samples of `state` that may begin now from the waiting list, and return them."""
        waiting, limit = self._waiting[state], state.limit
        released = [one for one in waiting if limit is None or self._numbers[one] < limit]
        del waiting[: len(released)]
        return released

    def starting_states(self, samples: Tensor, state: Any) -> Any:
        """Return the sampler states in which samples start.

        Args:
            samples: Indices (n,) of the samples.
            state: Initial state of n rows.

        Returns:
            The state of n rows.
        """
        if not self._shared:
            return state
        rows = (select_rows(state, row) for row in torch.arange(len(samples)).split(1))
        return concatenate_states(
            [self._shared[one].begin(row) for one, row in zip(samples.tolist(), rows, strict=True)]
        )

    def end(self, samples: Tensor, state: Any) -> None:
        """Store the final states of samples. If their round is over, the next round can begin.

        Args:
            samples: Indices (n,) of the samples.
            state: Their last states, n rows.
        """
        self.num_unfinished -= len(samples)
        if not self._shared:
            return
        for sample, row in zip(samples.tolist(), torch.arange(len(samples)).split(1), strict=True):
            shared = self._shared[sample]
            shared.end(self._numbers[sample], select_rows(state, row))
            if self._waiting[shared]:
                self.ready = torch.cat(
                    (self.ready, torch.tensor(self._release_waiting(shared), dtype=torch.int64))
                )

    def close(self) -> None:
        """Abandon all unfinished samples, so that other requests can use the shared states."""
        self.num_unfinished = 0
