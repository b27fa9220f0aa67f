"""Taking measures of checkpoints, of which one at a time is open: by the process that files them, or by its workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from trialogue.errors import InputError, out_of_memory
from trialogue.executors.folders import SharedFolder
from trialogue.inspection.measures.measure import CONTROL_SHARE, MEASURES, Effort, Material, Measure, Report
from trialogue.inspection.subject import Kind, Subject

KEPT = "kept"
"""The folder of what measures of several checkpoints share, in that of an inspection's work"""
MEMORY = "memory"
"""What a measure lacked that may be there when the same command goes on"""
_TIMED, _PASSES = (2, 64), 4
"""Rows and tokens of the passes that costs are told from."""

OF_THE_MODEL = ("model", "tokenizer")
"""Fields of errors that say that a measure cannot be taken of a model; all others are the user's to fix."""


class MeasureTask(NamedTuple):
    """The measure `name` of the checkpoint `place`, or of its `control`."""

    place: str
    name: str
    control: bool


class MeasurePlan(NamedTuple):
    """What tasks of a checkpoint come to.

    `kind` is that of the model, and `pace` its seconds a token. `tokens` says what each task costs, `refused` why a
    measure cannot be taken, each by its name.
    """

    kind: Kind
    pace: float
    tokens: dict[MeasureTask, int]
    refused: dict[str, str]


@dataclass(frozen=True)
class Asking:
    """What is the same for all tasks. `weights` are what checkpoints are known by, by their places."""

    weights: dict[str, str]
    effort: Effort
    device: str | None
    dtype: str
    remote_code: bool = False


class Taker:
    """Takes measures of checkpoints, and keeps the last checkpoint that it was asked about open.

    Raises `InputError` as `Subject.load` does, and for a checkpoint that has other weights than it is known by.
    """

    def __init__(self, asking: Asking, material: Material, report: Report = lambda _: None) -> None:
        self._asking, self._material, self._report = asking, material, report
        self._place: str | None = None
        self._subject: Subject | None = None
        self._control: Subject | None = None

    def plan(self, tasks: Sequence[MeasureTask]) -> MeasurePlan:
        """What `tasks` of one checkpoint come to; raises `InputError` where the material does not suffice."""
        subject = self._opened(tasks[0].place)
        refused: dict[str, str] = {}
        measures: dict[str, Measure] = {}
        for name in dict.fromkeys(task.name for task in tasks):
            measures[name] = MEASURES.find(name)()
            reason = self._refusal(measures[name], subject)
            if reason is not None:
                refused[name] = reason
        asked = {task: self._effort(task) for task in tasks if task.name not in refused}
        for task, effort in asked.items():
            measures[task.name].require(subject, self._material, effort)
        tokens = {
            task: measures[task.name].tokens(subject, self._material, effort)
            for task, effort in asked.items()
        }
        return MeasurePlan(subject.kind, _seconds_per_token(subject), tokens, refused)

    def take(self, task: MeasureTask) -> dict[str, Any]:
        """The `quantities` of a task and the `seconds` that it took, or why it is `refused`."""
        measure, subject = MEASURES.find(task.name)(), self._opened(task.place)
        began = time.perf_counter()
        try:
            if task.control:
                self._control = self._control or subject.control(self._asking.effort.seed)
                subject = self._control

            def report(line: str) -> None:
                self._report(f"{told_of(task)}: {line}")

            found = measure.take(subject, self._material, self._effort(task), report)
            records = [one.record() for one in found]
        except InputError as error:
            if error.field not in OF_THE_MODEL:
                raise
            return {"refused": error.hint}
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            hint = f"memory did not suffice with --effort {self._asking.effort.factor:g}: give another folder (--out) "
            hint += "and less, or the same command where there is more"
            return {"refused": hint, "lacks": MEMORY}
        return {"quantities": records, "seconds": round(time.perf_counter() - began, 1)}

    def _opened(self, place: str) -> Subject:
        if self._subject is None or self._place != place:
            # Two are not to be in memory at the same time.
            self._subject = self._control = None
            self._report(f"loading {place}")
            asking = self._asking
            try:
                subject = Subject.load(
                    place, device=asking.device, dtype=asking.dtype, remote_code=asking.remote_code
                )
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                hint = "memory does not suffice to load it: use a smaller --dtype, or another --device"
                raise InputError("model", place, hint) from error
            if subject.files != self._asking.weights[place]:
                raise InputError("model", place, _OTHERS)
            self._place, self._subject = place, subject
        return self._subject

    def _refusal(self, measure: Measure, subject: Subject) -> str | None:
        try:
            return measure.refusal(subject, self._material)
        except InputError as error:
            if error.field not in OF_THE_MODEL:
                raise
            return error.hint

    def _effort(self, task: MeasureTask) -> Effort:
        effort = self._asking.effort
        return replace(effort, factor=effort.factor * CONTROL_SHARE) if task.control else effort


def told_of(task: MeasureTask) -> str:
    """A task as messages name it, beside the checkpoint."""
    return f"{task.name}{' of random weights' if task.control else ''}"


_OTHERS = "a worker reads other files than this process: give all machines the same"


def taking(
    asking: Asking,
    text: Path | None,
    clones: Path | None,
    identity: dict[str, Any],
    threads: int,
    folder: SharedFolder,
) -> Callable[[MeasureTask | tuple[MeasureTask, ...]], dict[str, Any] | MeasurePlan]:
    """In a worker: what takes a task, or plans those of a checkpoint. Raises `InputError` for other files there."""
    torch.set_num_threads(threads)
    material = Material(text, clones)
    for field, value in identity.items():
        if material.identity[field] != value:
            raise InputError(field, str(text if field == "text" else clones), _OTHERS)
    taker = Taker(asking, material)

    def do(item: MeasureTask | tuple[MeasureTask, ...]) -> dict[str, Any] | MeasurePlan:
        material.kept = folder.of_worker() / KEPT
        return taker.take(item) if isinstance(item, MeasureTask) else taker.plan(item)

    return do


def _seconds_per_token(subject: Subject) -> float:
    """By the fastest of some passes: the first one takes longer, and so does each on a busy machine."""
    rows, length = _TIMED
    length = min(length, subject.longest)
    tokens = subject.ordinary[torch.arange(rows * length) % len(subject.ordinary)].view(rows, length)
    spent = []
    for _ in range(_PASSES):
        began = time.perf_counter()
        with torch.inference_mode():
            subject.model(input_ids=tokens.to(subject.model.device))
        spent.append(time.perf_counter() - began)
    return min(spent) / tokens.numel()
