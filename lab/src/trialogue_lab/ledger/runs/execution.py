"""Running a study: part by part, resuming what a killed run left, publishing the result last."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from trialogue.errors import InputError, whole_number
from trialogue.executors import Executor, Start
from trialogue.executors.folders import SharedFolder
from trialogue.executors.local import Local
from trialogue.storage import atomic_write
from trialogue_lab.ledger.claims.verdicts import stored_estimates
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.drafts import Draft, Measured, finished_part
from trialogue_lab.ledger.runs.provenance import models_noted, own_command, session
from trialogue_lab.ledger.runs.results import LATE, Result, config_values, is_finished, open_result, read_json
from trialogue_lab.ledger.study import Part, Study, study_of

Config = TypeVar("Config")


def execute(
    study: Study[Config],
    config: Config,
    results: str | Path = "runs",
    *,
    force: bool = False,
    workers: int = 1,
    executor: Executor | None = None,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """Return the result of `config`, measuring the parts that no earlier run has finished.

    A finished result returns at once, after drawing what figures it lacks and storing the estimates of claims added or
    corrected since; `force` measures it anew. With more than one of `workers`, lanes of parts run at the same time in
    as many processes of one thread, which import the study's module; an `executor` takes their place. `progress` is
    told one line per part, in the process that keeps it. On Ctrl-C the `KeyboardInterrupt` says where the finished
    parts are kept. Raises `InputError` where the folder cannot be written, holds corrupted files, or is in use by
    another process.
    """
    whole_number("workers", workers, 1)
    executor = executor or Local(workers=workers)
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
            if (executor.workers or 1) > len(lanes) > 0:
                bound = f"at most {len(lanes)} of {executor.workers} workers can measure at the same time"
                tell(f"{study.name}: {bound}")
            if executor.alone(len(lanes)):
                for lane in lanes.values():
                    for part in lane:
                        _keep(study, draft, _measured(study, part, draft.artifacts), tell)
            elif lanes:
                _measure_apart(study, config, draft, list(lanes.values()), executor, tell)
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
    added = [claim for claim in study.claims if claim.statistic.version not in known.get(claim.id, ())]
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


def _measured(study: Study[Config], part: Part, artifacts: Path) -> Measured:
    started = time.time()
    try:
        with models_noted() as models:
            rows = part.rows(artifacts)
    except Exception as error:
        error.add_note(f"in part {part.name} of the study {study.name}")
        raise
    for row in rows:
        if study.kind not in row:
            hint = f"part {part.name} of {study.name}: every row says here of which kind it is"
            raise InputError(study.kind, None, hint)
    return finished_part(part.name, rows, started, models)


def _keep(
    study: Study[Config],
    draft: Draft,
    measured: Measured,
    tell: Callable[[str], None],
    session: Mapping[str, object] | None = None,
) -> None:
    draft.keep(measured, session)
    seconds = time.time() - measured.started
    tell(f"{study.name} {measured.part}: {len(measured.rows)} rows in {seconds:.1f} s")


def _measure_apart(
    study: Study[Config],
    config: Config,
    draft: Draft,
    lanes: Sequence[Sequence[Part]],
    executor: Executor,
    tell: Callable[[str], None],
) -> None:
    """Measure and keep the parts of `lanes` by workers, which import the study's module."""
    with SharedFolder(draft.artifacts).open() as artifacts:
        if executor.same_disk:
            # A worker that keeps its parts itself keeps each as soon as it has it.
            start: Start = partial(_keeping, study.module, config, draft.folder, tell)
        else:
            start = partial(_bringing, study.module, config, artifacts, own_command())
        with executor.crew(start, len(lanes)) as crew:
            for _, brought in crew.done([[part.name for part in lane] for lane in lanes]):
                if brought is not None:
                    measured, session = brought
                    _keep(study, draft, measured, tell, session)


def _keeping(module: str, config: object, folder: Path, tell: Callable[[str], None]) -> Callable[[str], None]:
    """In a worker on the same disk: what measures a part, by its name, and keeps it."""
    study, draft = study_of(module), Draft(folder)
    parts = {part.name: part for part in study.parts(config)}
    return lambda name: _keep(study, draft, _measured(study, parts[name], draft.artifacts), tell)


def _bringing(
    module: str, config: object, artifacts: SharedFolder, command: str
) -> Callable[[str], tuple[Measured, dict[str, object]]]:
    """In a worker anywhere: what measures a part, by its name, and brings it back with the worker's session."""
    study = study_of(module)
    parts = {part.name: part for part in study.parts(config)}
    own = cache(partial(session, command))
    return lambda name: (_measured(study, parts[name], artifacts.of_worker()), own())
