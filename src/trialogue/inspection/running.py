"""Function that runs `trialogue inspect` on a checkpoint or a training run, and resumes interrupted inspections.

The folder `work/` of an inspection has one JSON file per measure and checkpoint, and one per measure for random
weights. Each file is written atomically when its measure finishes. The file `inspection.json` combines them. Workers
send their results to the main process, which writes all files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from trialogue import __version__
from trialogue.errors import InputError
from trialogue.executors import Executor
from trialogue.executors.folders import SharedFolder
from trialogue.executors.local import Local
from trialogue.inspection.interaction_order.measure import CheckpointLocation, find_checkpoints
from trialogue.inspection.measure_tasks import (
    MEMORY,
    SHARED_FOLDER,
    MeasurePlan,
    MeasureRunner,
    MeasureSettings,
    MeasureTask,
    start_worker,
    task_label,
)
from trialogue.inspection.measures.measure import MEASURES, Effort, Material, Report
from trialogue.inspection.result_files import (
    CONTROL_FOLDER,
    checkpoint_folder,
    collect_results,
    read_result,
    require_same_settings,
)
from trialogue.inspection.subject import CheckpointIdentity, Kind, read_identity
from trialogue.models.hub.checkpoint_loading import parse_dtype
from trialogue.storage import atomic_write, hold_lock, make_folder

FORMAT = "trialogue inspection 1"
RECORD = "inspection.json"
_WORK, _SETTINGS = "work", "settings.json"


def run_inspection(
    model: str | Path,
    folder: Path,
    *,
    measures: Sequence[str] = (),
    material: Material | None = None,
    effort: Effort | None = None,
    control: bool = True,
    device: str | None = None,
    dtype: str = "float32",
    executor: Executor | None = None,
    threads: int = 1,
    remote_code: bool = False,
    report: Report = lambda _: None,
) -> dict[str, Any]:
    """Run the measures of `trialogue inspect` on a model, or on each checkpoint of a training run.

    An interrupted inspection resumes when it is called again with the same folder. A later call may add measures. If a
    measure does not apply to the model, the reason is reported and recorded.

    Args:
        model: Checkpoint, or folder with the checkpoints of a training run.
        folder: Folder for the results.
        measures: Names of the measures, by default all.
        material: Real text, and clones (copies of a text with interactions of tokens up to a chosen order only). By
            default, measures that require them are skipped.
        effort: Sample sizes and seed.
        control: Whether to repeat the measures for the architecture of the first checkpoint with random weights. Sample
            sizes are a quarter of the others.
        device: Torch device. By default a GPU if there is one.
        dtype: Name of the dtype of the weights.
        executor: Executor whose workers run measures in parallel. All workers must find checkpoints and texts under the
            same paths. By default, everything runs in this process.
        threads: Number of PyTorch threads per worker.
        remote_code: Whether to run Python code from the repository of the model.
        report: Called with progress messages, including an estimate of the run time before anything is measured.

    Returns:
        The content of `inspection.json`, with the settings and, for each measure, the results of each checkpoint.

    Raises:
        InputError: If a measure is unknown, the model cannot be loaded, or the text or the clones are insufficient.
            Also if the folder has results of another model or with other settings, or a worker finds different files.
    """
    material, effort = material or Material(), effort or Effort()
    material.shared_folder = folder / _WORK / SHARED_FOLDER
    for name in measures:
        MEASURES.find(name)
    parse_dtype(dtype)
    checkpoints = find_checkpoints(model)
    identities = [read_identity(checkpoint.place, remote_code) for checkpoint in checkpoints]
    work = make_folder(folder / _WORK)
    with hold_lock(
        work / "lock", "out", str(folder), "another process uses this folder. Wait for it or stop it"
    ):
        settings: dict[str, Any] = {
            "effort": effort.factor,
            "seed": effort.seed,
            "control": control,
            "dtype": dtype,
            **material.identity,
        }
        has_results = any(path.parent.name != SHARED_FOLDER for path in work.glob("*/*.json"))
        require_same_settings(work / _SETTINGS, settings, has_results)
        weights = {
            checkpoint.place: identity.weights
            for checkpoint, identity in zip(checkpoints, identities, strict=True)
        }
        shared = MeasureSettings(weights, effort, device, dtype, remote_code)
        inspection = _Inspection(work, material, shared, report)
        names = [name for name in MEASURES if name in measures] if measures else _importable(report)
        pending = inspection.pending(checkpoints, identities, names, control)
        executor = executor or Local()
        if not pending or executor.alone(len(_task_chains(pending))):
            inspection.run_locally(pending)
        else:
            inspection.run_workers(pending, executor, threads)
        files = [None if path is None else path.resolve().name for path in material.paths]
        head = {
            "format": FORMAT,
            "version": __version__,
            "model": str(model),
            "settings": settings,
            "material": dict(zip(("text", "clones"), files, strict=True)),
        }
        record = {**head, **collect_results(work, checkpoints, control)}
        atomic_write(folder / RECORD, json.dumps(record, indent=1, allow_nan=False) + "\n")
    return record


def _importable(report: Report) -> list[str]:
    """Return the names of the measures that can be imported, and report those that cannot."""
    names = []
    for name in MEASURES:
        try:
            MEASURES.find(name)
        except InputError as error:
            report(f"{error}. Continuing without this measure")
        else:
            names.append(name)
    return names


class _Inspection:
    """An inspection whose results are in the folder `work`, which the caller has locked."""

    def __init__(self, work: Path, material: Material, settings: MeasureSettings, report: Report) -> None:
        self._work, self._material, self._settings, self._report = work, material, settings, report
        self._folders: dict[str, str] = {}
        self._files: dict[Path, str] = {}

    def pending(
        self,
        checkpoints: Sequence[CheckpointLocation],
        identities: Sequence[CheckpointIdentity],
        names: Sequence[str],
        control: bool,
    ) -> list[tuple[MeasureTask, ...]]:
        """Return the tasks without a result, one nonempty tuple per checkpoint.

        The tasks of the first checkpoint include the tasks of the control.

        Raises:
            InputError: If the folder has results for other weights.
        """
        pending = []
        for number, (checkpoint, identity) in enumerate(zip(checkpoints, identities, strict=True)):
            folder = checkpoint_folder(checkpoint)
            self._folders[checkpoint.place] = folder
            self._require_weights(self._work / folder, checkpoint, identity.weights)
            variants = (False, True) if control and number == 0 else (False,)
            if len(variants) > 1:
                self._require_weights(self._work / CONTROL_FOLDER, checkpoint, identity.architecture)
            tasks = (MeasureTask(checkpoint.place, name, variant) for name in names for variant in variants)
            missing = tuple(task for task in tasks if not self._is_finished(task))
            if missing:
                pending.append(missing)
        return pending

    def run_locally(self, pending: Sequence[tuple[MeasureTask, ...]]) -> None:
        """Run all tasks in this process, one checkpoint after the other."""
        runner = MeasureRunner(self._settings, self._material, self._report)
        for tasks in pending:
            plan = runner.plan(tasks)
            self._store_refusals(tasks, plan)
            self._report_costs([plan], "on this machine")
            for task, tokens in plan.tokens.items():
                self._report(f"{task_label(task)}: about {tokens:,} tokens, {_duration(plan.pace * tokens)}")
                self._store(task, plan.kind, runner.take(task), tokens)

    def run_workers(
        self, pending: Sequence[tuple[MeasureTask, ...]], executor: Executor, threads: int
    ) -> None:
        """Plan all checkpoints in workers, and then run the tasks there."""
        device, material = self._settings.device, self._material
        accelerated = device is None or device.startswith("cuda")
        with SharedFolder(self._work).open() as folder:
            start = partial(start_worker, self._settings, *material.paths, material.identity, threads, folder)
            with executor.start_workers(
                start, len(_task_chains(pending)), accelerated=accelerated
            ) as workers:
                plans: dict[str, MeasurePlan] = {}
                for tasks, plan in workers.done([[tasks] for tasks in pending]):
                    plans[tasks[0].place] = plan
                    self._store_refusals(tasks, plan)
                # Each worker keeps its latest checkpoint loaded, so tasks are ordered by checkpoint and not by the
                # order in which the plans finished.
                planned = {tasks[0].place: tuple(plans[tasks[0].place].tokens) for tasks in pending}
                self._report_costs([plans[place] for place in planned], "of one worker")
                for task, result in workers.done(_task_chains([*planned.values()])):
                    plan = plans[task.place]
                    self._store(task, plan.kind, result, plan.tokens[task])
                    if "seconds" in result:
                        self._report(f"{task.place}: {task_label(task)}: {_duration(result['seconds'])}")

    def _report_costs(self, plans: Sequence[MeasurePlan], where: str) -> None:
        for plan in plans:
            tokens = sum(plan.tokens.values())
            if tokens:
                place = next(iter(plan.tokens)).place
                self._report(f"{place}: about {tokens:,} tokens, {_duration(plan.pace * tokens)} {where}")

    def _store_refusals(self, tasks: Sequence[MeasureTask], plan: MeasurePlan) -> None:
        for task in tasks:
            if task.name in plan.refused:
                self._store(task, plan.kind, {"refused": plan.refused[task.name]})

    def _path(self, task: MeasureTask) -> Path:
        folder = CONTROL_FOLDER if task.control else self._folders[task.place]
        return self._work / folder / f"{task.name}.json"

    def _is_finished(self, task: MeasureTask) -> bool:
        """Return whether a task has a result, or was refused for a reason that still applies."""
        record = read_result(self._path(task))
        if record is None or "refused" not in record:
            return record is not None
        return record.get("lacks") != MEMORY and not self._material.has(record.get("lacks"))

    def _require_weights(self, folder: Path, checkpoint: CheckpointLocation, files: str) -> None:
        """Raise `InputError` if `folder` has results for weights whose identity is not `files`."""
        for path in sorted(folder.glob("*.json")):
            if (read_result(path) or {}).get("files") != files:
                hint = f"{path} was measured with other weights. Use another folder (--out)"
                raise InputError("model", checkpoint.place, hint)
        self._files[folder] = files

    def _store(self, task: MeasureTask, kind: Kind, result: dict[str, Any], tokens: int = 0) -> None:
        measure, path = MEASURES.find(task.name)(), self._path(task)
        if "refused" in result:
            if not task.control:
                self._report(f"{task.name}: skipped: {result['refused']}")
            lacks = measure.needs is not None and not self._material.has(measure.needs)
            result = {"lacks": measure.needs if lacks else None, **result}
        else:
            result = {**result, "tokens": tokens}
        description = {
            "version": __version__,
            "question": measure.question,
            "reading": measure.reading,
            "logarithmic": measure.logarithmic,
        }
        record = {**description, "kind": kind, "files": self._files[path.parent], **result}
        atomic_write(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def _task_chains(pending: Iterable[Sequence[MeasureTask]]) -> list[tuple[MeasureTask, ...]]:
    """Group the tasks of one measure of one checkpoint, so that the control can reuse intermediate results."""
    return [tuple(group) for tasks in pending for _, group in groupby(tasks, key=lambda task: task.name)]


def _duration(seconds: float) -> str:
    return (
        f"{int(seconds // 60)} min {int(seconds % 60)} s" if seconds >= 60 else f"{max(1, round(seconds))} s"
    )
