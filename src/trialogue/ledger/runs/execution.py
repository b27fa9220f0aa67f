"""Running a study: part by part, resuming what a killed run left, publishing the result last."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from joblib import Parallel, delayed

from trialogue.errors import InputError, whole_number
from trialogue.ledger.claims.verdicts import stored_estimates
from trialogue.ledger.pages.figures import svg
from trialogue.ledger.rows import Rows
from trialogue.ledger.runs.drafts import Draft
from trialogue.ledger.runs.provenance import models_noted
from trialogue.ledger.runs.results import (
    LATE,
    Result,
    config_values,
    is_finished,
    open_result,
    read_json,
)
from trialogue.ledger.study import Part, Study, study_of
from trialogue.storage import atomic_write

Config = TypeVar("Config")


def execute(
    study: Study[Config],
    config: Config,
    results: str | Path = "results",
    *,
    force: bool = False,
    workers: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """Return the result of `config`, measuring the parts that no earlier run has finished.

    A finished result returns at once, after drawing what figures it lacks and storing the estimates of claims added or
    corrected since; `force` measures it anew. With more than one of `workers`, lanes of parts run at the same time in
    as many processes of one thread, which import the study's module. `progress` is told one line per part, in the
    process that measured it. On Ctrl-C the `KeyboardInterrupt` says where the finished parts are kept. Raises
    `InputError` where the folder cannot be written, holds corrupted files, or is in use by another process.
    """
    whole_number("workers", workers, 1)
    folder = study.result_folder(config, results)
    tell = progress or (lambda _: None)
    if is_finished(folder) and not force:
        return _completed(study, open_result(folder))
    parts = list(study.parts(config))
    names = [part.name for part in parts]
    if not parts or len(set(names)) < len(names):
        raise InputError("parts", names, f"study {study.name} must have one or more parts, each name once")
    draft = Draft(folder)
    with draft.locked():
        if force:
            draft.clear()
        values = config_values(config)
        draft.register(
            {
                "study": study.name,
                "version": study.version,
                "preset": study.preset_of(config),
                "config": values,
            },
            {claim.id: claim.registration(values) for claim in study.claims},
        )
        try:
            for name in filter(draft.has, names):
                tell(f"{study.name} {name}: kept from an earlier run")
            lanes: dict[str, list[Part]] = {}
            for part in parts:
                if not draft.has(part.name):
                    lanes.setdefault(part.lane or part.name, []).append(part)
            if workers > len(lanes) > 0:
                tell(f"{study.name}: at most {len(lanes)} of {workers} workers can measure at the same time")
            if workers == 1 or len(lanes) < 2:
                for lane in lanes.values():
                    _measure(study, draft, lane, tell)
            else:
                tasks = [
                    delayed(_measure_apart)(study.module, config, folder, [part.name for part in lane], tell)
                    for lane in lanes.values()
                ]
                Parallel(n_jobs=min(workers, len(lanes)), batch_size=1)(tasks)
            result = draft.publish(
                names, lambda rows: stored_estimates(study.claims, Rows(rows, study.kind, values))
            )
        except KeyboardInterrupt as error:
            kept = sum(map(draft.has, names))
            where = f"interrupted: {kept} of {len(names)} parts are kept in {folder}"
            raise KeyboardInterrupt(f"{where}; the same command resumes") from error
    return _completed(study, result)


def _completed(study: Study[Config], result: Result) -> Result:
    """`result`, with a file for every figure of the study, and the estimates of claims added or corrected since."""
    known = result.estimates
    added = [claim for claim in study.claims if claim.quantity.version not in known.get(claim.id, ())]
    if added:
        late = result.folder / LATE
        entries: dict[str, list[Any]] = read_json(late) if late.is_file() else {}
        for identity, entry in stored_estimates(added, study.rows(result)).items():
            entries.setdefault(identity, []).append(entry)
        atomic_write(late, json.dumps(entries, indent=1) + "\n")
    for figure in study.figures:
        path = result.folder / "figures" / f"{figure.name}.svg"
        if not path.exists():
            atomic_write(path, svg(figure, study.rows(result)))
    return result


def _measure(study: Study[Config], draft: Draft, parts: Sequence[Part], tell: Callable[[str], None]) -> None:
    """Measure and keep `parts`, one after the other."""
    for part in parts:
        started = time.time()
        try:
            with models_noted() as models:
                rows = part.rows(draft.artifacts)
        except Exception as error:
            error.add_note(f"in part {part.name} of the study {study.name}")
            raise
        for row in rows:
            if study.kind not in row:
                mend = f"part {part.name} of {study.name}: every row says here of which kind it is"
                raise InputError(study.kind, None, mend)
        draft.add(part.name, rows, started, models)
        tell(f"{study.name} {part.name}: {len(rows)} rows in {time.time() - started:.1f} s")


def _measure_apart(
    module: str, config: object, folder: Path, names: Sequence[str], tell: Callable[[str], None]
) -> None:
    """`_measure` in a process of its own, which imports the study's `module`."""
    torch.set_num_threads(1)
    study = study_of(module)
    _measure(study, Draft(folder), [part for part in study.parts(config) if part.name in names], tell)
