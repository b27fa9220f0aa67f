"""Tasks that run one measure on one checkpoint, in this process or in workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from trialogue.errors import InputError, is_out_of_memory
from trialogue.executors.folders import SharedFolder
from trialogue.inspection.measures.measure import (
    CONTROL_MODELS,
    CONTROL_SHARE,
    MEASURES,
    Effort,
    Material,
    Measure,
    Report,
)
from trialogue.inspection.measures.quantities import Quantity, combine_quantities
from trialogue.inspection.subject import Kind, Subject
from trialogue.randomness import derive_seed

SHARED_FOLDER = "kept"
"""Folder for intermediate results that measures of several checkpoints share."""
MEMORY = "memory"
"""Value of `lacks` for a measure that ran out of memory, which is attempted again on the next run."""
_TIMED_SHAPE, _TIMED_PASSES = (2, 64), 4
"""Shape and number of the forward passes from which run times are estimated."""

MODEL_FIELDS = ("model", "tokenizer")
"""Error fields which mean that a measure does not apply to the model. All other errors stop the inspection."""


class MeasureTask(NamedTuple):
    """Task to run one measure on one checkpoint.

    Attributes:
        place: Path, hub id or short name of the checkpoint.
        name: Name of the measure.
        control: If True, the measure runs for several models of the same architecture with random weights.
    """

    place: str
    name: str
    control: bool


class MeasurePlan(NamedTuple):
    """Estimated costs of the tasks of one checkpoint.

    Attributes:
        kind: Kind of the model, "causal" or "masked".
        pace: Time per token of a forward pass, in seconds.
        tokens: Number of tokens that each task processes, without tasks that do not apply.
        refused: Reasons why measures do not apply to the model, by the name of the measure.
    """

    kind: Kind
    pace: float
    tokens: dict[MeasureTask, int]
    refused: dict[str, str]


@dataclass(frozen=True)
class MeasureSettings:
    """Settings that all tasks of an inspection share.

    Args:
        weights: Identifier of the weights of each checkpoint, by its location. A worker that finds other
            weights raises an error.
        effort: Sample sizes and seed.
        device: Torch device. None for a GPU if there is one and the CPU otherwise.
        dtype: Name of the dtype of the weights.
        remote_code: Whether to run Python code from the repository of a model.
    """

    weights: dict[str, str]
    effort: Effort
    device: str | None
    dtype: str
    remote_code: bool = False


class MeasureRunner:
    """Runs measures on checkpoints. Only the most recent checkpoint is kept in memory.

    Args:
        settings: Settings of all tasks.
        material: Texts on which the models are evaluated.
        report: Called with progress messages.

    Raises:
        InputError: If a checkpoint cannot be loaded or its weights have changed.
    """

    def __init__(
        self, settings: MeasureSettings, material: Material, report: Report = lambda _: None
    ) -> None:
        self._settings, self._material, self._report = settings, material, report
        self._place: str | None = None
        self._subject: Subject | None = None

    def plan(self, tasks: Sequence[MeasureTask]) -> MeasurePlan:
        """Load a checkpoint, check which measures apply to it, and estimate their costs.

        Args:
            tasks: Tasks of a single checkpoint.

        Returns:
            Estimated costs, and the reasons why measures do not apply.

        Raises:
            InputError: If no measure can run, and the text or the clones are insufficient for one of them.
        """
        subject = self._load(tasks[0].place)
        refused: dict[str, str] = {}
        measures: dict[str, Measure] = {}
        for name in dict.fromkeys(task.name for task in tasks):
            measures[name] = MEASURES.find(name)()
            reason = self._refusal(measures[name], subject)
            if reason is not None:
                refused[name] = reason
        efforts = {task: self._effort(task) for task in tasks if task.name not in refused}
        insufficient: InputError | None = None
        for task, effort in efforts.items():
            try:
                measures[task.name].require(subject, self._material, effort)
            except InputError as error:
                insufficient = error
                refused[task.name] = f"{error.field}={error.value}: {error.hint}"
        if insufficient is not None and len(refused) == len(measures):
            raise insufficient
        tokens = {
            task: measures[task.name].count_tokens(subject, self._material, effort)
            * (CONTROL_MODELS if task.control else 1)
            for task, effort in efforts.items()
            if task.name not in refused
        }
        return MeasurePlan(subject.kind, _seconds_per_token(subject), tokens, refused)

    def take(self, task: MeasureTask) -> dict[str, Any]:
        """Run a task, and return its results as JSON values.

        Args:
            task: Measure and checkpoint.

        Returns:
            A dictionary with JSON values. `quantities` has the results and `seconds` the run time. If the measure does
            not apply, the dictionary has only `refused`, the reason. If memory was insufficient, it also has `lacks`
            with the value `MEMORY`.
        """
        measure, subject = MEASURES.find(task.name)(), self._load(task.place)
        began = time.perf_counter()
        try:
            found = (self._take_control if task.control else self._take)(task, measure, subject)
            records = [one.record() for one in found]
        except InputError as error:
            if error.field not in MODEL_FIELDS:
                raise
            return {"refused": error.hint}
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            hint = f"memory is insufficient for --effort {self._settings.effort.factor:g}. Use a smaller effort and "
            hint += "another folder (--out), or run the same command on a machine with more memory"
            return {"refused": hint, "lacks": MEMORY}
        return {"quantities": records, "seconds": round(time.perf_counter() - began, 1)}

    def _take(self, task: MeasureTask, measure: Measure, subject: Subject) -> list[Quantity]:
        def report(line: str) -> None:
            self._report(f"{task_label(task)}: {line}")

        return measure.take(subject, self._material, self._effort(task), report)

    def _take_control(self, task: MeasureTask, measure: Measure, subject: Subject) -> list[Quantity]:
        """Measure several models with random weights, of which only one is in memory at a time."""
        found = []
        for number in range(CONTROL_MODELS):
            self._report(f"{task_label(task)}: model {number + 1} of {CONTROL_MODELS}")
            control = subject.control(derive_seed(self._settings.effort.seed, number))
            found.append(measure.take(control, self._material, self._effort(task), lambda _: None))
            del control
        return combine_quantities(found)

    def _load(self, place: str) -> Subject:
        """Load a checkpoint, unless it is the current one."""
        if self._subject is None or self._place != place:
            # Release the previous checkpoint first, because memory may not suffice for two.
            self._subject = None
            self._report(f"loading {place}")
            settings = self._settings
            try:
                subject = Subject.load(
                    place, device=settings.device, dtype=settings.dtype, remote_code=settings.remote_code
                )
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                hint = "memory is insufficient to load the model. Use a smaller --dtype or another --device"
                raise InputError("model", place, hint) from error
            if subject.files != settings.weights[place]:
                raise InputError("model", place, _OTHER_FILES)
            self._place, self._subject = place, subject
        return self._subject

    def _refusal(self, measure: Measure, subject: Subject) -> str | None:
        try:
            return measure.refusal(subject, self._material)
        except InputError as error:
            if error.field not in MODEL_FIELDS:
                raise
            return error.hint

    def _effort(self, task: MeasureTask) -> Effort:
        effort = self._settings.effort
        return replace(effort, factor=effort.factor * CONTROL_SHARE) if task.control else effort


def task_label(task: MeasureTask) -> str:
    """Return the name of the measure for messages, followed by "of random weights" for a control.

    Args:
        task: Measure and checkpoint.
    """
    return f"{task.name}{' of random weights' if task.control else ''}"


_OTHER_FILES = "a worker found different files at this path. Provide the same files on all machines"


def start_worker(
    settings: MeasureSettings,
    text: Path | None,
    clones: Path | None,
    identity: dict[str, Any],
    threads: int,
    folder: SharedFolder,
) -> Callable[[MeasureTask | tuple[MeasureTask, ...]], dict[str, Any] | MeasurePlan]:
    """Prepare a worker process, and return the function that processes its tasks.

    Args:
        settings: Settings of all tasks.
        text: File or folder of real text, or None.
        clones: Folder of clones of a text, or None.
        identity: Checksums of the text and of the clones in the calling process (`Material.identity`).
        threads: Number of PyTorch threads.
        folder: Folder that the worker shares with the calling process.

    Returns:
        A function of one argument. For a `MeasureTask`, it runs the task and returns the result of
        `MeasureRunner.take`. For a tuple of tasks of one checkpoint, it returns their `MeasurePlan`.

    Raises:
        InputError: If the worker finds another text or other clones than the calling process.
    """
    torch.set_num_threads(threads)
    material = Material(text, clones)
    for field, value in identity.items():
        if material.identity[field] != value:
            raise InputError(field, str(text if field == "text" else clones), _OTHER_FILES)
    runner = MeasureRunner(settings, material)

    def run(item: MeasureTask | tuple[MeasureTask, ...]) -> dict[str, Any] | MeasurePlan:
        material.shared_folder = folder.of_worker() / SHARED_FOLDER
        return runner.take(item) if isinstance(item, MeasureTask) else runner.plan(item)

    return run


def _seconds_per_token(subject: Subject) -> float:
    """Time some forward passes and return the minimum, which warm-up and other processes affect the least."""
    rows, length = _TIMED_SHAPE
    length = min(length, subject.max_length)
    ordinary = subject.ordinary_tokens
    tokens = ordinary[torch.arange(rows * length) % len(ordinary)].view(rows, length)
    masked, sites, spent = None, torch.zeros(1, dtype=torch.int64), []
    if subject.kind == "masked":
        with suppress(InputError):  # without a mask token
            masked = subject.masked
    for _ in range(_TIMED_PASSES):
        began = time.perf_counter()
        with torch.inference_mode():
            if masked is None:
                subject.model(input_ids=tokens.to(subject.model.device))
            else:
                masked.logits_at(tokens, sites, sites)
        spent.append(time.perf_counter() - began)
    return min(spent) / tokens.numel()
