"""Running a study: part by part, resuming what a killed run left, publishing the result last."""

import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from joblib import Parallel, delayed

from trialogue.errors import InputError, whole_number
from trialogue.ledger.drafts import Draft
from trialogue.ledger.figures import svg
from trialogue.ledger.results import Result, config_values, is_finished, open_result
from trialogue.ledger.study import Study
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

    A finished result returns at once, after drawing what figures it lacks; `force` measures it anew. With more than
    one of `workers`, lanes of parts run at the same time in as many processes of one thread, which find the study by
    its name. `progress` is told one line per part, in the process that measured it. On Ctrl-C the
    `KeyboardInterrupt` says where the finished parts are kept. Raises `InputError` where the folder cannot be
    written, holds corrupted files, or is in use by another process.
    """
    whole_number("workers", workers, 1)
    folder = study.folder(config, results)
    tell = progress or (lambda _: None)
    if is_finished(folder) and not force:
        return _with_figures(study, open_result(folder))
    parts = list(study.parts(config))
    if not parts or len(set(parts)) < len(parts):
        raise InputError("parts", parts, f"study {study.name} must name one or more parts, each once")
    draft = Draft(folder)
    with draft.locked():
        if force:
            draft.clear()
        draft.register(
            {
                "study": study.name,
                "version": study.version,
                "preset": study.preset_of(config),
                "config": config_values(config),
            },
            {claim.id: claim.registration() for claim in study.claims},
        )
        try:
            for part in filter(draft.has, parts):
                tell(f"{study.name} {part}: kept from an earlier run")
            lanes: dict[str, list[str]] = {}
            for part in parts:
                if not draft.has(part):
                    lanes.setdefault(study.lane(part), []).append(part)
            if workers > len(lanes) > 0:
                tell(
                    f"{study.name}: no more than {len(lanes)} of {workers} workers can measure at the same time"
                )
            if workers == 1 or len(lanes) < 2:
                for lane in lanes.values():
                    _measure(study, config, draft, lane, tell)
            else:
                tasks = [
                    delayed(_measure_apart)(
                        "trialogue.studies." + study.name.replace("-", "_"), config, folder, lane, tell
                    )
                    for lane in lanes.values()
                ]
                Parallel(n_jobs=min(workers, len(lanes)), batch_size=1)(tasks)
            result = draft.publish(parts)
        except KeyboardInterrupt as error:
            kept = sum(map(draft.has, parts))
            where = f"interrupted: {kept} of {len(parts)} parts are kept in {folder}"
            raise KeyboardInterrupt(f"{where}; the same command resumes") from error
    return _with_figures(study, result)


def _with_figures(study: Study[Config], result: Result) -> Result:
    """`result`, with a file for every figure of the study."""
    for figure in study.figures:
        path = result.folder / "figures" / f"{figure.name}.svg"
        if not path.exists():
            atomic_write(path, svg(figure, result.rows))
    return result


def _measure(
    study: Study[Config], config: Config, draft: Draft, parts: Sequence[str], tell: Callable[[str], None]
) -> None:
    """Measure and keep `parts`, one after the other."""
    for part in parts:
        started = time.time()
        rows = list(study.run(config, part, draft.artifacts))
        draft.add(part, rows, started)
        tell(f"{study.name} {part}: {len(rows)} rows in {time.time() - started:.1f} s")


def _measure_apart(
    module: str, config: object, folder: Path, parts: Sequence[str], tell: Callable[[str], None]
) -> None:
    """`_measure` in a process of its own, which imports the study's module."""
    torch.set_num_threads(1)
    _measure(importlib.import_module(module).STUDY, config, Draft(folder), parts, tell)
