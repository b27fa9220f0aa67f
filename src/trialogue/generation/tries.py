"""Which samples a run draws: as many of each prompt as were asked for, or until enough of them are accepted."""

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from trialogue.generation.sample_file import Key
from trialogue.generation.settings import Sampling

Record = dict[str, Any]

AT_ONCE = 1 << 14
"""Maximum number of samples per batch. It bounds the memory of a run, whatever `n` is."""


class Tries:
    """The samples of a run of `prompts` prompts, some of which an earlier run `kept`.

    They are the first `n` of each prompt. With `until` they are the first up to the one that is accepted as the
    `until`th, `most_tries` at most: where that is depends on nothing but the samples, whatever is drawn at once. What
    was drawn in advance and lies behind it is left out.
    """

    def __init__(self, sampling: Sampling, prompts: int, kept: Mapping[Key, Record]) -> None:
        self._sampling, self._finished = sampling, dict(kept)
        self._early: set[Key] = set()
        self.counts = [0] * prompts
        """How many samples of each prompt are finished, up to the first that is not."""
        self.accepted = [0] * prompts
        """How many of these are accepted."""
        self.left_out = 0
        """Samples that were drawn, and do not belong to the run."""
        for place in range(prompts):
            self._advance(place)

    def pending(self) -> list[Key]:
        """Return the keys of the next batch of samples, which is empty if the run is finished."""
        missing = (
            (place, sample)
            for place, count in enumerate(self.counts)
            for sample in range(count, count + self._next(place))
            if (place, sample) not in self._finished
        )
        return list(islice(missing, AT_ONCE))

    def finish(self, key: Key, record: Record) -> list[tuple[Key, Record]]:
        """Take a sample that was drawn; returns those that turn out to belong to the run, which may be earlier ones."""
        place = key[0]
        if not self._next(place):
            self.left_out += 1
            return []
        self._finished[key] = record
        self._early.add(key)
        passed = self._advance(place)
        early = sorted(other for other in self._early if other[0] == place)
        known = [key] if self._sampling.until is None else [other for other in early if other in passed]
        done = not self._next(place)
        self._early -= {*(early if done else known)}
        self.left_out += len(early) - len(known) if done else 0
        return [(own, self._finished[own]) for own in known]

    def finished(self, place: int) -> bool:
        """Whether no more samples of a prompt are drawn."""
        return not self._next(place)

    def keys(self) -> list[Key]:
        """The samples of a finished run, in the order of prompts and samples."""
        return [(place, sample) for place, count in enumerate(self.counts) for sample in range(count)]

    def _advance(self, place: int) -> set[Key]:
        """Count the samples of a prompt that have no gap before them; returns those that were not counted before."""
        passed = set()
        while self._next(place) and (place, self.counts[place]) in self._finished:
            key = (place, self.counts[place])
            self.counts[place] += 1
            self.accepted[place] += bool(self._finished[key]["accepted"])
            passed.add(key)
        return passed

    def _next(self, place: int) -> int:
        """How many samples of a prompt, from the first that is not finished, are worth drawing at once."""
        until, count = self._sampling.until, self.counts[place]
        if until is None:
            return self._sampling.n - count
        wanted = until - self.accepted[place]
        # Of few samples the share that is accepted is known badly: one of each kind is added to them.
        share = (self.accepted[place] + 1) / (count + 2) if count else 1.0
        return max(0, min(math.ceil(wanted / share), self._sampling.most_tries - count))
