"""Running a study: part by part, resuming what a killed run left, publishing the result last."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pandas import DataFrame

from trialogue.errors import InputError
from trialogue.ledger.drafts import Draft
from trialogue.ledger.figures import svg
from trialogue.ledger.results import Result, config_values, is_finished, open_result
from trialogue.studies.study import Study

Config = TypeVar("Config")


def execute(
    study: Study[Config],
    config: Config,
    results: str | Path = "results",
    *,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """Return the result of `config`, measuring the parts that no earlier run has finished.

    A finished result returns at once; `force` measures it anew. `progress` is told one line per part. On
    Ctrl-C the `KeyboardInterrupt` says where the finished parts are kept. Raises `InputError` where the
    folder cannot be written, holds corrupted files, or is in use by another process.
    """
    folder = study.folder(config, results)
    tell = progress or (lambda _: None)
    if is_finished(folder) and not force:
        return open_result(folder)
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
            for number, part in enumerate(parts, start=1):
                place = f"{study.name} {number}/{len(parts)} {part}"
                if draft.has(part):
                    tell(f"{place}: kept from an earlier run")
                    continue
                started = time.time()
                rows = list(study.run(config, part, draft.artifacts))
                draft.add(part, rows, started)
                tell(f"{place}: {len(rows)} rows in {time.time() - started:.1f} s")
            frame = DataFrame(draft.rows(parts))
            return draft.publish(parts, {figure.name: svg(figure, frame) for figure in study.figures})
        except KeyboardInterrupt as error:
            kept = sum(map(draft.has, parts))
            where = f"interrupted: {kept} of {len(parts)} parts are kept in {folder}"
            raise KeyboardInterrupt(f"{where}; the same command resumes") from error
