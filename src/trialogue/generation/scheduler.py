"""The scheduler of `trialogue generate`: which samples are drawn, when, and by which process."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.executors import Executor
from trialogue.generation.drawing import Drawer
from trialogue.generation.output.live_text import Feedback
from trialogue.generation.output.sink import Key, Record, Sink
from trialogue.generation.settings import GenerationSettings, Sampling

AT_ONCE = 1 << 14
"""Maximum number of samples per round. It bounds the memory of a run, whatever `n` is."""
_ROWS = 64
"""Default number of rows per batch of a worker. If a worker dies, its batch is drawn again."""


class Schedule:
    """The samples of a run of `prompts` prompts, some of which an earlier run has `kept`.

    They are the first `n` of each prompt. With `until` they are the first up to the one that is accepted as the
    `until`th, `most_tries` at most. Which ones these are depends on the samples alone, not on how many are drawn at
    once. Samples that were drawn in advance and come after the last one are left out.

    If the output is `ordered`, `finish` returns samples in the order of prompts and samples. Raises `InputError` if
    the samples in `kept` make this order impossible.
    """

    def __init__(
        self, sampling: Sampling, prompts: int, kept: Mapping[Key, Record], *, ordered: bool = False
    ) -> None:
        self._sampling, self._ordered, self._finished = sampling, ordered, dict(kept)
        self._waiting: dict[int, set[int]] = defaultdict(set)
        """Samples of each prompt that are finished and not yet returned."""
        self._turn = (0, 0)
        """The sample that an ordered output gets next."""
        self.counts = [0] * prompts
        """How many samples of each prompt are finished without a gap."""
        self.accepted = [0] * prompts
        """How many of these are accepted."""
        self.left_out = 0
        """Number of samples that were drawn and do not belong to the run."""
        for place in range(prompts):
            self._advance(place)
        if ordered:
            _require_order(list(kept), self.pending())

    def pending(self) -> list[Key]:
        """Return the keys of the next round of samples, which is empty if the run is finished."""
        missing = (
            (place, sample)
            for place, count in enumerate(self.counts)
            for sample in range(count, count + self._missing(place))
            if (place, sample) not in self._finished
        )
        return list(islice(missing, AT_ONCE))

    def finish(self, key: Key, record: Record) -> list[tuple[Key, Record]]:
        """Take a sample that was drawn, and return the samples that can be written now, perhaps earlier ones."""
        place, sample = key
        if not self._missing(place):
            self.left_out += 1
            return []
        self._finished[key] = record
        waiting = self._waiting[place]
        waiting.add(sample)
        self._advance(place)
        if not self._missing(place):
            beyond = {other for other in waiting if other >= self.counts[place]}
            self.left_out += len(beyond)
            waiting -= beyond
        ready = self._in_turn() if self._ordered else [(place, other) for other in self._certain(place)]
        for own_place, own_sample in ready:
            self._waiting[own_place].remove(own_sample)
        return [(own, self._finished[own]) for own in ready]

    def keys(self) -> list[Key]:
        """Return the keys of the samples of a finished run, in the order of prompts and samples."""
        return [(place, sample) for place, count in enumerate(self.counts) for sample in range(count)]

    def _certain(self, place: int) -> list[int]:
        """Return the waiting samples of a prompt that belong to the run."""
        every = self._sampling.until is None
        return sorted(one for one in self._waiting[place] if every or one < self.counts[place])

    def _in_turn(self) -> list[Key]:
        """Return the waiting samples that have none missing before them."""
        ready = []
        place, sample = self._turn
        while place < len(self.counts):
            if sample < self.counts[place]:
                if sample in self._waiting[place]:
                    ready.append((place, sample))
                sample += 1
            elif self._missing(place):
                break
            else:
                place, sample = place + 1, 0
        self._turn = (place, sample)
        return ready

    def _advance(self, place: int) -> None:
        """Count the samples of a prompt that have no gap before them."""
        while self._missing(place) and (place, self.counts[place]) in self._finished:
            self.accepted[place] += bool(self._finished[place, self.counts[place]]["accepted"])
            self.counts[place] += 1

    def _missing(self, place: int) -> int:
        """Return how many samples of a prompt to draw at once, from the first that is not finished."""
        until, count = self._sampling.until, self.counts[place]
        if until is None:
            return self._sampling.n - count
        wanted = until - self.accepted[place]
        # With few samples the accepted share is uncertain: one of each kind is added to them.
        share = (self.accepted[place] + 1) / (count + 2) if count else 1.0
        return max(0, min(math.ceil(wanted / share), self._sampling.most_tries - count))


def _require_order(kept: list[Key], pending: list[Key]) -> None:
    """Raise `InputError` if samples that are missing would come after `kept` ones that follow them."""
    why = None
    if kept != sorted(kept):
        why = "the samples that are there are in another order"
    elif kept and pending and min(pending) < kept[-1]:
        earlier = min(pending)[0] < kept[-1][0]
        what = "more samples of an earlier prompt" if earlier else "samples that are missing"
        why = f"{what} would come behind later ones"
    if why is not None:
        raise InputError("ordered", True, f"{why}: leave it out, or begin anew with --force")


class RunResult(NamedTuple):
    """The records of a run in the order of prompts and samples.

    `kept` of the records come from an earlier run, and `left_out` samples were drawn in advance and are not among
    them. `tokens` and `seconds` count this run only.
    """

    records: list[Record]
    kept: int
    left_out: int
    tokens: int
    seconds: float


def run(settings: GenerationSettings, sink: Sink, feedback: Feedback) -> RunResult:
    """Draw the samples that `sink` does not hold yet, and write each as it finishes.

    Raises `InputError` for settings that cannot be used, and if memory does not suffice.
    """
    sampling, earlier = settings.sampling, {**sink.kept, **sink.held}
    schedule = Schedule(sampling, len(settings.prompts), sink.kept, ordered=settings.destination.ordered)

    def take(key: Key, record: Record) -> None:
        for own, ready in schedule.finish(key, record):
            sink.write(own, ready)
        if key not in sink.kept:
            sink.hold(key, record)

    for key, record in list(sink.held.items()):
        take(key, record)
    executor = settings.execution.opened(settings.machine.threads)
    pending, tokens, began = schedule.pending(), 0, time.perf_counter()
    if pending and not executor.alone(len(_batches(pending, settings))):
        tokens = _draw_apart(settings, executor, schedule, take, feedback)
    elif pending:
        feedback.report(f"loading {settings.inputs.model}")
        drawer = Drawer(settings, feedback)
        began = time.perf_counter()
        while pending:
            tokens += drawer.draw(pending, take)
            pending = schedule.pending()
        for note in drawer.remarks:
            feedback.warn(note)
    if sampling.until is not None or not sink.held:
        sink.settle()
    keys = schedule.keys()
    return RunResult(
        [sink.kept[key] for key in keys],
        kept=sum(key in earlier for key in keys),
        left_out=schedule.left_out,
        tokens=tokens,
        seconds=time.perf_counter() - began,
    )


class DrawnBatch(NamedTuple):
    """The result of a worker: the records of samples, their number of tokens, and warnings."""

    records: list[tuple[Key, Record]]
    tokens: int
    notes: tuple[str, ...]


def _batches(pending: Sequence[Key], settings: GenerationSettings) -> list[tuple[Key, ...]]:
    """Return the samples in batches, each of which one worker draws at once."""
    rows = settings.machine.batch_size or _ROWS
    size = max(1, rows // settings.sampler.rows_per_sample)
    return [tuple(pending[start : start + size]) for start in range(0, len(pending), size)]


def _draw_apart(
    settings: GenerationSettings,
    executor: Executor,
    schedule: Schedule,
    take: Callable[[Key, Record], None],
    feedback: Feedback,
) -> int:
    """Draw all samples of `schedule` by the workers of `executor`, and return how many tokens they have.

    Raises `InputError` if the verifiers of a worker are made of other files than this process sees.
    """
    device = settings.machine.device
    accelerated = device is None or device.startswith("cuda")
    runs, pending, tokens, warned = settings.runs(), schedule.pending(), 0, set[str]()
    lanes = len(_batches(pending, settings))
    with executor.crew(partial(_worker, settings), lanes, accelerated=accelerated) as crew:
        while pending:
            left = len(pending)
            for _, batch in crew.done([[keys] for keys in _batches(pending, settings)]):
                for key, record in batch.records:
                    if record["run"] != runs[key[0]]:
                        verifier = settings.combine_verifiers(settings.prompts[key[0]]).specs
                        hint = "a worker reads other files than this process: give all machines the same"
                        raise InputError("verifier", list(verifier), hint)
                    take(key, record)
                tokens += batch.tokens
                left -= len(batch.records)
                feedback.report(f"{left} samples to draw")
                for note in dict.fromkeys(batch.notes):
                    if note not in warned:
                        feedback.warn(note)
                    warned.add(note)
            pending = schedule.pending()
    return tokens


def _worker(settings: GenerationSettings) -> Callable[[tuple[Key, ...]], DrawnBatch]:
    """Load what a worker needs, and return its function that draws a batch."""
    torch.set_num_threads(settings.machine.threads)
    notes: list[str] = []
    drawer = Drawer(settings, Feedback(warn=notes.append))

    def draw(keys: tuple[Key, ...]) -> DrawnBatch:
        records: list[tuple[Key, Record]] = []
        tokens = drawer.draw(keys, lambda key, record: records.append((key, record)))
        return DrawnBatch(records, tokens, (*notes, *drawer.remarks))

    return draw
