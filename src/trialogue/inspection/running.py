"""Inspecting a checkpoint, or those of a training: what is filed is not measured again, and all ends in one record.

A folder has `work/`, one JSON file for every measure of every checkpoint and of the control, each written in one step
when it is finished; and `inspection.json`, what they come to. Workers bring what they measure to the process that hires
them, which alone files it.
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
from trialogue.inspection.filing import CONTROL_FOLDER, filed_measure, folder_of, gathered, require_same
from trialogue.inspection.interaction_order.measure import Found, checkpoints_of
from trialogue.inspection.measures.measure import MEASURES, Effort, Material, Report
from trialogue.inspection.subject import Identity, Kind, identity_of
from trialogue.inspection.taking import KEPT, MEMORY, Asking, MeasurePlan, MeasureTask, Taker, taking, told_of
from trialogue.models.hub.checkpoint_loading import checked_dtype
from trialogue.storage import atomic_write, locked, make_folder

FORMAT = "trialogue inspection 1"
RECORD = "inspection.json"
_WORK, _SETTINGS = "work", "settings.json"


def inspected(
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
    """Take `measures`, by default all, of the checkpoint `model`, or of each in a folder that a training left.

    The `control` has the architecture of the first checkpoint and random weights, and is asked a quarter as much.
    Finished measures are filed in `folder`; the same call goes on with them, also with further measures. Costs are told
    to `report` before anything runs. The workers of an `executor` take measures at the same time, each with `threads`
    threads of torch, and with checkpoints and texts as they find them under the same paths. Code that comes with a
    model runs only with `remote_code`. Returns what `inspection.json` holds.

    Raises `InputError` for an unknown measure, a model that cannot be had, a text or clones that do not suffice, a
    folder that another model or other settings were inspected in, and workers that find other files. What cannot be
    taken of the model is told and noted.
    """
    material, effort = material or Material(), effort or Effort()
    material.kept = folder / _WORK / KEPT
    for name in measures:
        MEASURES.find(name)
    checked_dtype(dtype)
    found = checkpoints_of(model)
    known = [identity_of(place.place, remote_code) for place in found]
    work = make_folder(folder / _WORK)
    with locked(work / "lock", "out", str(folder), "another process inspects there: wait for it, or stop it"):
        settings: dict[str, Any] = {
            "effort": effort.factor,
            "seed": effort.seed,
            "control": control,
            "dtype": dtype,
            **material.identity,
        }
        begun = any(path.parent.name != KEPT for path in work.glob("*/*.json"))
        require_same(work / _SETTINGS, settings, begun)
        weights = {place.place: identity.weights for place, identity in zip(found, known, strict=True)}
        run = _Run(work, material, Asking(weights, effort, device, dtype, remote_code), report)
        wanted = [name for name in MEASURES if name in measures] if measures else _importable(report)
        pending = run.pending(found, known, wanted, control)
        executor = executor or Local()
        if not pending or executor.alone(len(_lanes(pending))):
            run.alone(pending)
        else:
            run.apart(pending, executor, threads)
        head = {"format": FORMAT, "version": __version__, "model": str(model), "settings": settings}
        record = {**head, **gathered(work, found, control)}
        atomic_write(folder / RECORD, json.dumps(record, indent=1, allow_nan=False) + "\n")
    return record


def _importable(report: Report) -> list[str]:
    """The names of all measures but those that cannot be imported, which is told."""
    names = []
    for name in MEASURES:
        try:
            MEASURES.find(name)
        except InputError as error:
            report(f"{error}; the others go on without it")
        else:
            names.append(name)
    return names


class _Run:
    """One session in a locked folder `work`."""

    def __init__(self, work: Path, material: Material, asking: Asking, report: Report) -> None:
        self._work, self._material, self._asking, self._report = work, material, asking, report
        self._folders: dict[str, str] = {}
        self._files: dict[Path, str] = {}

    def pending(
        self, found: Sequence[Found], known: Sequence[Identity], names: Sequence[str], control: bool
    ) -> list[tuple[MeasureTask, ...]]:
        """What is not filed yet of each checkpoint and, with the first, of its `control`; of none nothing.

        Raises `InputError` where the folder has what was measured of other weights.
        """
        pending = []
        for number, (place, identity) in enumerate(zip(found, known, strict=True)):
            self._folders[place.place] = folder_of(place)
            self._require_these(self._work / folder_of(place), place, identity.weights)
            both = (False, True) if control and number == 0 else (False,)
            if len(both) > 1:
                self._require_these(self._work / CONTROL_FOLDER, place, identity.architecture)
            tasks = (MeasureTask(place.place, name, of_random) for name in names for of_random in both)
            missing = tuple(task for task in tasks if not self._filed(task))
            if missing:
                pending.append(missing)
        return pending

    def alone(self, pending: Sequence[tuple[MeasureTask, ...]]) -> None:
        """Take everything in this process, checkpoint by checkpoint."""
        taker = Taker(self._asking, self._material, self._report)
        for tasks in pending:
            plan = taker.plan(tasks)
            self._refuse_what_cannot_be(tasks, plan)
            self._tell_costs([plan], "on this machine")
            for task, tokens in plan.tokens.items():
                self._report(f"{told_of(task)}: about {tokens:,} tokens, {_clock(plan.pace * tokens)}")
                self._file(task, plan.kind, taker.take(task), tokens)

    def apart(self, pending: Sequence[tuple[MeasureTask, ...]], executor: Executor, threads: int) -> None:
        """Have workers take everything: first what is to be done of all checkpoints, then a lane for each measure."""
        device, material = self._asking.device, self._material
        accelerated = device is None or device.startswith("cuda")
        with SharedFolder(self._work).open() as folder:
            start = partial(taking, self._asking, *material.paths, material.identity, threads, folder)
            with executor.crew(start, len(_lanes(pending)), accelerated=accelerated) as crew:
                plans: dict[str, MeasurePlan] = {}
                for tasks, plan in crew.done([[tasks] for tasks in pending]):
                    plans[tasks[0].place] = plan
                    self._refuse_what_cannot_be(tasks, plan)
                # Workers keep the last checkpoint open: the order is that of checkpoints, not that of plans.
                planned = {tasks[0].place: tuple(plans[tasks[0].place].tokens) for tasks in pending}
                self._tell_costs([plans[place] for place in planned], "of one worker")
                for task, said in crew.done(_lanes([*planned.values()])):
                    plan = plans[task.place]
                    self._file(task, plan.kind, said, plan.tokens[task])
                    if "seconds" in said:
                        self._report(f"{task.place}: {told_of(task)}: {_clock(said['seconds'])}")

    def _tell_costs(self, plans: Sequence[MeasurePlan], where: str) -> None:
        for plan in plans:
            tokens = sum(plan.tokens.values())
            if tokens:
                place = next(iter(plan.tokens)).place
                self._report(f"{place}: about {tokens:,} tokens, {_clock(plan.pace * tokens)} {where}")

    def _refuse_what_cannot_be(self, tasks: Sequence[MeasureTask], plan: MeasurePlan) -> None:
        for task in tasks:
            if task.name in plan.refused:
                self._file(task, plan.kind, {"refused": plan.refused[task.name]})

    def _path(self, task: MeasureTask) -> Path:
        folder = CONTROL_FOLDER if task.control else self._folders[task.place]
        return self._work / folder / f"{task.name}.json"

    def _filed(self, task: MeasureTask) -> bool:
        """Whether there is nothing more to do: what a measure lacked may be there now."""
        record = filed_measure(self._path(task))
        if record is None or "refused" not in record:
            return record is not None
        return record.get("lacks") != MEMORY and not self._material.has(record.get("lacks"))

    def _require_these(self, folder: Path, found: Found, files: str) -> None:
        """Raise `InputError` where `folder` has what was measured of other weights than those known by `files`."""
        for path in sorted(folder.glob("*.json")):
            if (filed_measure(path) or {}).get("files") != files:
                hint = f"{path} was measured of other weights: give another folder (--out)"
                raise InputError("model", found.place, hint)
        self._files[folder] = files

    def _file(self, task: MeasureTask, kind: Kind, said: dict[str, Any], tokens: int = 0) -> None:
        measure, path = MEASURES.find(task.name)(), self._path(task)
        if "refused" in said:
            if not task.control:
                self._report(f"{task.name}: not taken: {said['refused']}")
            lacks = measure.needs is not None and not self._material.has(measure.needs)
            said = {"lacks": measure.needs if lacks else None, **said}
        else:
            said = {**said, "tokens": tokens}
        described = {
            "version": __version__,
            "question": measure.question,
            "reading": measure.reading,
            "logarithmic": measure.logarithmic,
        }
        record = {**described, "kind": kind, "files": self._files[path.parent], **said}
        atomic_write(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def _lanes(pending: Iterable[Sequence[MeasureTask]]) -> list[tuple[MeasureTask, ...]]:
    """A lane for each measure of each checkpoint: its control may go on with what it kept."""
    return [tuple(group) for tasks in pending for _, group in groupby(tasks, key=lambda task: task.name)]


def _clock(seconds: float) -> str:
    return (
        f"{int(seconds // 60)} min {int(seconds % 60)} s" if seconds >= 60 else f"{max(1, round(seconds))} s"
    )
