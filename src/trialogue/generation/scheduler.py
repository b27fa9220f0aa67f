"""Decides which samples of `trialogue generate` are generated next, in which batches and by which workers."""

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
from trialogue.generation.drawing import SampleGenerator
from trialogue.generation.output.live_text import Feedback
from trialogue.generation.output.round_files import RoundFiles
from trialogue.generation.output.sink import Key, Record, Sink
from trialogue.generation.settings import GenerationSettings, Sampling

AT_ONCE = 1 << 14
"""Maximum number of samples per round, which bounds the memory of a run."""
_ROWS = 64
"""Default number of rows per batch of a worker. If a worker dies, its batch is drawn again."""


class Schedule:
    """Decides which samples of a run to generate next and which finished samples to write.

    For each prompt, `n` samples are generated, or samples until `until` of them are accepted. The result does
    not depend on how many samples are generated at the same time. Samples beyond the last required one are
    discarded.

    Args:
        sampling: Options on the number of samples.
        prompts: Number of prompts.
        kept: Records of an earlier run, by prompt index and sample index.
        ordered: Whether samples are written in the order of prompts and samples. Otherwise they are written
            as they finish.

    Raises:
        InputError: If `ordered` is True and the records of the earlier run are out of order.
    """

    def __init__(
        self, sampling: Sampling, prompts: int, kept: Mapping[Key, Record], *, ordered: bool = False
    ) -> None:
        self._sampling, self._ordered, self._finished = sampling, ordered, dict(kept)
        self._waiting: dict[int, set[int]] = defaultdict(set)
        """Finished samples of each prompt that have not been returned."""
        self._turn = (0, 0)
        """Key of the next sample in an ordered output."""
        self.counts = [0] * prompts
        """Number of samples of each prompt that are finished without a gap."""
        self.accepted = [0] * prompts
        """Number of accepted samples in these counts."""
        self.left_out = 0
        """Number of surplus samples that were discarded."""
        for place in range(prompts):
            self._advance(place)
        if ordered:
            _require_order(list(kept), self.pending())

    def pending(self) -> list[Key]:
        """Return the samples to generate next, at most `AT_ONCE`.

        Returns:
            Pairs of a prompt index and a sample index. The list is empty if the run is finished.
        """
        missing = (
            (place, sample)
            for place, count in enumerate(self.counts)
            for sample in range(count, count + self._count_missing(place))
            if (place, sample) not in self._finished
        )
        return list(islice(missing, AT_ONCE))

    def finish(self, key: Key, record: Record) -> list[tuple[Key, Record]]:
        """Store a finished sample, and return the samples that can now be written.

        A sample can be written when it is certain to belong to the result. In an ordered output, all earlier
        samples must also be finished.

        Args:
            key: Index of the prompt and index of the sample.
            record: Output record of the sample.

        Returns:
            Keys and records to write, in this order.
        """
        place, sample = key
        if not self._count_missing(place):
            self.left_out += 1
            return []
        self._finished[key] = record
        waiting = self._waiting[place]
        waiting.add(sample)
        self._advance(place)
        if not self._count_missing(place):
            beyond = {other for other in waiting if other >= self.counts[place]}
            self.left_out += len(beyond)
            waiting -= beyond
        ready = (
            self._next_in_order()
            if self._ordered
            else [(place, other) for other in self._final_samples(place)]
        )
        for ready_place, ready_sample in ready:
            self._waiting[ready_place].remove(ready_sample)
        return [(ready_key, self._finished[ready_key]) for ready_key in ready]

    def keys(self) -> list[Key]:
        """Return the prompt index and sample index of all samples of a finished run, in this order."""
        return [(place, sample) for place, count in enumerate(self.counts) for sample in range(count)]

    def _final_samples(self, place: int) -> list[int]:
        """Return the waiting samples of a prompt that are certain to belong to the run."""
        is_fixed_number = self._sampling.until is None
        return sorted(
            sample for sample in self._waiting[place] if is_fixed_number or sample < self.counts[place]
        )

    def _next_in_order(self) -> list[Key]:
        """Return the waiting samples that directly follow the samples already returned."""
        ready = []
        place, sample = self._turn
        while place < len(self.counts):
            if sample < self.counts[place]:
                if sample in self._waiting[place]:
                    ready.append((place, sample))
                sample += 1
            elif self._count_missing(place):
                break
            else:
                place, sample = place + 1, 0
        self._turn = (place, sample)
        return ready

    def _advance(self, place: int) -> None:
        """Update the number of samples of a prompt that are finished without a gap."""
        while self._count_missing(place) and (place, self.counts[place]) in self._finished:
            self.accepted[place] += bool(self._finished[place, self.counts[place]]["accepted"])
            self.counts[place] += 1

    def _count_missing(self, place: int) -> int:
        """Return how many samples of a prompt to generate next, starting at the first unfinished one."""
        until, count = self._sampling.until, self.counts[place]
        if until is None:
            return self._sampling.n - count
        wanted = until - self.accepted[place]
        # Adding one accepted and one rejected sample stabilises the estimated share (rule of succession).
        share = (self.accepted[place] + 1) / (count + 2) if count else 1.0
        return max(0, min(math.ceil(wanted / share), self._sampling.max_samples_per_prompt - count))


def _require_order(kept: list[Key], pending: list[Key]) -> None:
    """Raise `InputError` if the samples in `kept` are out of order or have gaps."""
    problem = None
    if kept != sorted(kept):
        problem = "the samples in the file are in another order"
    elif kept and pending and min(pending) < kept[-1]:
        earlier = min(pending)[0] < kept[-1][0]
        missing = "new samples of an earlier prompt" if earlier else "missing samples"
        problem = f"{missing} would follow later ones"
    if problem is not None:
        raise InputError("ordered", True, f"leave it out or overwrite the file with --force: {problem}")


class RunResult(NamedTuple):
    """Samples of a finished run, with their costs.

    Attributes:
        records: Output records in the order of prompts and samples.
        kept: Number of records that were read from the file of an earlier run.
        left_out: Number of samples that were generated beyond the last required one and discarded.
        tokens: Number of tokens generated in this run.
        seconds: Duration of this run in seconds.
    """

    records: list[Record]
    kept: int
    left_out: int
    tokens: int
    seconds: float


def run(settings: GenerationSettings, sink: Sink, feedback: Feedback) -> RunResult:
    """Generate the missing samples of a run, and write each when it is finished.

    Args:
        settings: Settings of the run.
        sink: Output, which may contain samples of an earlier run.
        feedback: Progress output.

    Returns:
        All samples, including samples of the earlier run.

    Raises:
        InputError: If the settings cannot be used or the memory does not suffice.
    """
    sampling, earlier = settings.sampling, {**sink.kept, **sink.held}
    schedule = Schedule(sampling, len(settings.prompts), sink.kept, ordered=settings.destination.ordered)

    def take(key: Key, record: Record) -> None:
        for ready_key, ready_record in schedule.finish(key, record):
            sink.write(ready_key, ready_record)
        if key not in sink.kept:
            sink.hold(key, record)

    for key, record in list(sink.held.items()):
        take(key, record)
    executor = settings.execution.opened(settings.machine.threads)
    pending, tokens, start = schedule.pending(), 0, time.perf_counter()
    if pending and not executor.alone(len(_batches(pending, settings))):
        tokens = _draw_with_workers(settings, executor, schedule, take, feedback)
    elif pending:
        rounds = None
        if settings.sampler.round_size is not None:
            rounds = RoundFiles(settings, sink.tables, feedback.warn)
            rounds.read(dict.fromkeys(place for place, _ in pending))
            if (most := sampling.max_samples_per_prompt) <= (size := settings.sampler.round_size):
                hint = f"generate more than {size} samples" + (", or use --share 1" if most > 1 else "")
                feedback.warn(f"share={size}: the first {size} samples of a prompt share nothing: {hint}")
        feedback.report(f"loading {settings.inputs.model}")
        generator = SampleGenerator(settings, feedback, rounds)
        start = time.perf_counter()
        while pending:
            tokens += generator.draw(pending, take)
            pending = schedule.pending()
        for note in generator.remarks:
            feedback.warn(note)
    if sampling.until is not None or not sink.held:
        sink.discard_waiting()
    keys = schedule.keys()
    return RunResult(
        [sink.kept[key] for key in keys],
        kept=sum(key in earlier for key in keys),
        left_out=schedule.left_out,
        tokens=tokens,
        seconds=time.perf_counter() - start,
    )


class GeneratedBatch(NamedTuple):
    """Samples that a worker process has generated.

    Attributes:
        records: Prompt index and sample index of each sample, with its output record.
        tokens: Number of generated tokens.
        notes: Warnings for the user.
    """

    records: list[tuple[Key, Record]]
    tokens: int
    notes: tuple[str, ...]


def _batches(pending: Sequence[Key], settings: GenerationSettings) -> list[tuple[Key, ...]]:
    """Split the samples into batches for workers."""
    rows = settings.machine.batch_size or _ROWS
    size = max(1, rows // settings.sampler.rows_per_sample)
    return [tuple(pending[start : start + size]) for start in range(0, len(pending), size)]


def _draw_with_workers(
    settings: GenerationSettings,
    executor: Executor,
    schedule: Schedule,
    take: Callable[[Key, Record], None],
    feedback: Feedback,
) -> int:
    """Generate all samples of `schedule` with the workers of `executor`, and return their number of tokens.

    Raises `InputError` if a worker and this process have different verifier files.
    """
    device = settings.machine.device
    accelerated = device is None or device.startswith("cuda")
    digests, pending, tokens, warned = settings.prompt_digests(), schedule.pending(), 0, set[str]()
    lanes = len(_batches(pending, settings))
    with executor.start_workers(partial(_worker, settings), lanes, accelerated=accelerated) as workers:
        while pending:
            left = len(pending)
            for _, batch in workers.done([[keys] for keys in _batches(pending, settings)]):
                for key, record in batch.records:
                    if record["run"] != digests[key[0]]:
                        verifier = settings.verifiers_for(settings.prompts[key[0]]).specs
                        hint = "use the same verifier files on all machines: a worker has different files"
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


def _worker(settings: GenerationSettings) -> Callable[[tuple[Key, ...]], GeneratedBatch]:
    """Load a worker, and return its function that generates a batch."""
    torch.set_num_threads(settings.machine.threads)
    notes: list[str] = []
    generator = SampleGenerator(settings, Feedback(warn=notes.append))

    def draw(keys: tuple[Key, ...]) -> GeneratedBatch:
        records: list[tuple[Key, Record]] = []
        tokens = generator.draw(keys, lambda key, record: records.append((key, record)))
        return GeneratedBatch(records, tokens, (*notes, *generator.remarks))

    return draw
