"""Running studies, with resumption of interrupted runs."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from trialogue.errors import InputError
from trialogue.executors import Executor, Start
from trialogue.executors.folders import SharedFolder
from trialogue.executors.local import Local
from trialogue.storage import atomic_write
from trialogue.validation import Count, check
from trialogue_lab.ledger.claims.verdicts import stored_estimates
from trialogue_lab.ledger.pages.figures import svg
from trialogue_lab.ledger.rows import Rows
from trialogue_lab.ledger.runs.drafts import Draft, MeasuredPart, finish_part
from trialogue_lab.ledger.runs.provenance import describe_session, format_own_command, record_models
from trialogue_lab.ledger.runs.results import LATE, Result, config_values, is_finished, open_result, read_json
from trialogue_lab.ledger.study import Part, Study, load_study

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
    """Run a study, or resume an interrupted run, and return its result.

    A run consists of tasks (`Part`), whose measurements are saved when they finish. A finished result is not measured
    again, but missing figures are drawn and estimates of claims added since then are stored.

    Args:
        study: The study, an experiment that tests claims of a publication.
        config: The config of the run.
        results: Folder of results (default: "runs").
        force: Measure a finished result again (default: False).
        workers: Number of processes, with one thread each (default: 1). Each runs one chain of tasks (`Part.lane`) at a
            time.
        executor: Executor that runs the workers. By default, local processes.
        progress: Called with a one-line message for each task.

    Returns:
        The finished result.

    Raises:
        InputError: The folder cannot be written, has corrupted files, or is in use by another process.
        KeyboardInterrupt: The run was interrupted. The message names the folder of the finished tasks.
    """
    check("workers", workers, Count)
    executor = executor or Local(workers=workers)
    folder = study.result_folder(config, results)
    report = progress or (lambda _: None)
    if is_finished(folder) and not force:
        return _update_result(study, open_result(folder))
    parts = list(study.parts(config))
    names = [part.name for part in parts]
    if not parts or len(set(names)) < len(names):
        raise InputError("parts", names, f"the study {study.name} needs one or more parts with unique names")
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
            for name in filter(draft.contains, names):
                report(f"{study.name} {name}: finished in an earlier run")
            lanes: dict[str, list[Part]] = {}
            for part in parts:
                if not draft.contains(part.name):
                    lanes.setdefault(part.lane or part.name, []).append(part)
            if (executor.workers or 1) > len(lanes) > 0:
                limit = f"at most {len(lanes)} of {executor.workers} workers can measure at the same time"
                report(f"{study.name}: {limit}")
            if executor.alone(len(lanes)):
                for lane in lanes.values():
                    for part in lane:
                        _save_task(study, draft, _measure(study, part, draft.artifacts), report)
            elif lanes:
                _measure_in_workers(study, config, draft, list(lanes.values()), executor, report)
            result = draft.publish(
                names, lambda rows: stored_estimates(study.claims, Rows(rows, study.kind, values))
            )
        except KeyboardInterrupt as error:
            kept = sum(map(draft.contains, names))
            where = f"interrupted: {kept} of {len(names)} parts are kept in {folder}"
            raise KeyboardInterrupt(f"{where}. Run the same command to resume.") from error
    return _update_result(study, result)


def _update_result(study: Study[Config], result: Result) -> Result:
    """Draw missing figures of a finished result, and store estimates of claims added or corrected since."""
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


def _measure(study: Study[Config], part: Part, artifacts: Path) -> MeasuredPart:
    started = time.time()
    try:
        with record_models() as models:
            rows = part.rows(artifacts)
    except Exception as error:
        error.add_note(f"in part {part.name} of the study {study.name}")
        raise
    for row in rows:
        if study.kind not in row:
            hint = (
                f"add this column, the kind of measurement, to every row of part {part.name} of {study.name}"
            )
            raise InputError(study.kind, None, hint)
    return finish_part(part.name, rows, started, models)


def _save_task(
    study: Study[Config],
    draft: Draft,
    measured: MeasuredPart,
    report: Callable[[str], None],
    session: Mapping[str, object] | None = None,
) -> None:
    draft.save(measured, session)
    seconds = time.time() - measured.started
    report(f"{study.name} {measured.part}: {len(measured.rows)} rows in {seconds:.1f} s")


def _measure_in_workers(
    study: Study[Config],
    config: Config,
    draft: Draft,
    lanes: Sequence[Sequence[Part]],
    executor: Executor,
    report: Callable[[str], None],
) -> None:
    """Run the tasks in worker processes, one chain of tasks (lane) at a time."""
    with SharedFolder(draft.artifacts).open() as artifacts:
        if executor.same_disk:
            # A worker on the same disk stores each part as soon as it is finished.
            start: Start = partial(_start_storing_worker, study.module, config, draft.folder, report)
        else:
            start = partial(_start_returning_worker, study.module, config, artifacts, format_own_command())
        with executor.start_workers(start, len(lanes)) as workers:
            for _, returned in workers.done([[part.name for part in lane] for lane in lanes]):
                if returned is not None:
                    measured, session = returned
                    _save_task(study, draft, measured, report, session)


def _start_storing_worker(
    module: str, config: object, folder: Path, report: Callable[[str], None]
) -> Callable[[str], None]:
    """Return a function that runs one task by name and saves its measurements. For workers with access to the disk."""
    study, draft = load_study(module), Draft(folder)
    parts = {part.name: part for part in study.parts(config)}
    return lambda name: _save_task(study, draft, _measure(study, parts[name], draft.artifacts), report)


def _start_returning_worker(
    module: str, config: object, artifacts: SharedFolder, command: str
) -> Callable[[str], tuple[MeasuredPart, dict[str, object]]]:
    """Return a function that runs one task by name and returns its measurements. For remote workers."""
    study = load_study(module)
    parts = {part.name: part for part in study.parts(config)}
    own = cache(partial(describe_session, command))
    return lambda name: (_measure(study, parts[name], artifacts.of_worker()), own())
