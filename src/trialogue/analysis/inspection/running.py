"""Inspecting a checkpoint, or those of a training: what is filed is not measured again, and all ends in one record.

A folder has `work/`, one JSON file for every measure of every checkpoint and of the control, each written in one step
when it is finished; and `inspection.json`, what they come to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from trialogue import __version__
from trialogue.analysis.inspection.filing import (
    CONTROL_FOLDER,
    filed_measure,
    folder_of,
    gathered,
    require_same,
)
from trialogue.analysis.inspection.measure import CONTROL_SHARE, MEASURES, Effort, Material, Measure, Report
from trialogue.analysis.inspection.subject import Identity, Subject, identity_of
from trialogue.analysis.interaction_order.measure import Found, checkpoints_of
from trialogue.errors import InputError
from trialogue.storage import atomic_write, locked, make_folder

FORMAT = "trialogue inspection 1"
RECORD = "inspection.json"
_WORK, _SETTINGS, _KEPT = "work", "settings.json", "kept"
_TIMED, _PASSES = (2, 64), 4
"""Rows and tokens of the passes that costs are told from."""

OF_THE_MODEL = ("model", "tokenizer")
"""Fields of errors that say that a measure cannot be taken of a model; all others are the user's to mend."""


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
    report: Report = lambda _: None,
) -> dict[str, Any]:
    """Take `measures`, by default all, of the checkpoint `model`, or of each in a folder that a training left.

    The `control` has the architecture of the first checkpoint and random weights, and is asked a quarter as much.
    Finished measures are filed in `folder`; the same call goes on with them, also with further measures. Costs are told
    to `report` before anything runs. Returns what `inspection.json` holds.

    Raises `InputError` for an unknown measure, a model that cannot be had, a text or clones that do not suffice, and a
    folder that another model or other settings were inspected in. What cannot be taken of the model is told and noted.
    """
    material, effort = material or Material(), effort or Effort()
    material.kept = folder / _WORK / _KEPT
    for name in measures:
        MEASURES.find(name)
    found = checkpoints_of(model)
    known = [identity_of(place.place) for place in found]
    work = make_folder(folder / _WORK)
    with locked(work / "lock", "out", str(folder), "another process inspects there: wait for it, or stop it"):
        settings: dict[str, Any] = {
            "effort": effort.factor,
            "seed": effort.seed,
            "control": control,
            "dtype": dtype,
            **material.identity,
        }
        require_same(work / _SETTINGS, settings)
        run = _Run(work, material, effort, control, device, dtype, report)
        wanted = [name for name in MEASURES if name in measures or not measures]
        for place, identity in zip(found, known, strict=True):
            run.take(place, identity, wanted)
        head = {"format": FORMAT, "version": __version__, "model": str(model), "settings": settings}
        record = {**head, **gathered(work, found)}
        atomic_write(folder / RECORD, json.dumps(record, indent=1, allow_nan=False) + "\n")
    return record


class _Run:
    """One session in a locked folder `work`."""

    def __init__(
        self,
        work: Path,
        material: Material,
        effort: Effort,
        control: bool,
        device: str | None,
        dtype: str,
        report: Report,
    ) -> None:
        self._work, self._material, self._effort, self._report = work, material, effort, report
        self._with_control, self._device, self._dtype = control, device, dtype
        self._files: dict[Path, str] = {}

    def take(self, found: Found, identity: Identity, names: Sequence[str]) -> None:
        """Take what is not filed yet of one checkpoint, and, of the first one, of its control."""
        own, beside = self._work / folder_of(found), self._work / CONTROL_FOLDER
        first = not self._files
        self._require_these(own, found, identity.weights)
        subjects = {own: _once(lambda: self._loaded(found))}
        if self._with_control and first:
            subjects[beside] = _once(lambda: subjects[own]().control(self._effort.seed))
            self._require_these(beside, found, identity.architecture)
        missing = [
            (name, folder)
            for name in names
            for folder in subjects
            if not self._filed(folder / f"{name}.json")
        ]
        if not missing:
            return
        subject = subjects[own]()
        pace = _seconds_per_token(subject)
        planned: list[tuple[Measure, str, Path, Effort]] = []
        for name, folder in missing:
            measure = MEASURES.find(name)()
            reason = self._refusal(measure, subject)
            if reason is not None:
                self._refuse(folder, name, measure, subject, reason)
                continue
            asked = self._effort if folder == own else self._of_control()
            planned.append((measure, name, folder, asked))
        for measure, _, _, asked in planned:
            measure.require(subject, self._material, asked)
        costs = [measure.tokens(subject, self._material, asked) for measure, _, _, asked in planned]
        if planned:
            self._report(
                f"{found.place}: about {sum(costs):,} tokens, {_clock(pace * sum(costs))} on this machine"
            )
        for (measure, name, folder, asked), cost in zip(planned, costs, strict=True):
            whose = f"{name}{'' if folder == own else ' of random weights'}"
            self._report(f"{whose}: about {cost:,} tokens, {_clock(pace * cost)}")
            began = time.perf_counter()
            try:
                quantities = measure.take(
                    subjects[folder](),
                    self._material,
                    asked,
                    partial(self._told, whose),
                )
                records = [one.record() for one in quantities]
            except InputError as error:
                if error.field not in OF_THE_MODEL:
                    raise
                self._refuse(folder, name, measure, subject, error.mend)
                continue
            spent = time.perf_counter() - began
            said = {
                "quantities": records,
                "tokens": cost,
                "seconds": round(spent, 1),
            }
            self._file(folder, name, measure, subject, said)

    def _filed(self, path: Path) -> bool:
        """Whether there is nothing more to do: what a measure lacked may be there now."""
        record = filed_measure(path)
        return record is not None and not ("refused" in record and self._material.has(record.get("lacks")))

    def _told(self, whose: str, line: str) -> None:
        self._report(f"{whose}: {line}")

    def _refusal(self, measure: Measure, subject: Subject) -> str | None:
        try:
            return measure.refusal(subject, self._material)
        except InputError as error:
            if error.field not in OF_THE_MODEL:
                raise
            return error.mend

    def _loaded(self, found: Found) -> Subject:
        self._report(f"loading {found.place}")
        return Subject.load(found.place, device=self._device, dtype=self._dtype)

    def _of_control(self) -> Effort:
        return replace(self._effort, factor=self._effort.factor * CONTROL_SHARE)

    def _require_these(self, folder: Path, found: Found, files: str) -> None:
        """Raise `InputError` where `folder` has what was measured of other weights than those known by `files`."""
        for path in sorted(folder.glob("*.json")):
            if (filed_measure(path) or {}).get("files") != files:
                mend = f"{path} was measured of other weights: give another folder (--out)"
                raise InputError("model", found.place, mend)
        self._files[folder] = files

    def _refuse(self, folder: Path, name: str, measure: Measure, subject: Subject, reason: str) -> None:
        if folder != self._work / CONTROL_FOLDER:
            self._report(f"{name}: not taken: {reason}")
        lacks = measure.needs is not None and not self._material.has(measure.needs)
        said = {"refused": reason, "lacks": measure.needs if lacks else None}
        self._file(folder, name, measure, subject, said)

    def _file(
        self, folder: Path, name: str, measure: Measure, subject: Subject, said: dict[str, Any]
    ) -> None:
        described = {
            "version": __version__,
            "question": measure.question,
            "reading": measure.reading,
            "logarithmic": measure.logarithmic,
        }
        record = {**described, "kind": subject.kind, "files": self._files[folder], **said}
        atomic_write(folder / f"{name}.json", json.dumps(record, indent=1, allow_nan=False) + "\n")


def _once(make: Callable[[], Subject]) -> Callable[[], Subject]:
    made: list[Subject] = []

    def get() -> Subject:
        if not made:
            made.append(make())
        return made[0]

    return get


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


def _clock(seconds: float) -> str:
    return (
        f"{int(seconds // 60)} min {int(seconds % 60)} s" if seconds >= 60 else f"{max(1, round(seconds))} s"
    )
