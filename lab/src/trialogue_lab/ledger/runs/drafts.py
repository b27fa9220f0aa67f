"""Unfinished results, which save each finished task of a run so that the run can be resumed.

A task ("part") is for example all measurements of one seed. Saved tasks, and the files that they share, are in the
folder `work` inside the result's folder. Git ignores this folder.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from trialogue.errors import InputError
from trialogue.storage import atomic_write, convert_write_errors, hold_lock, make_folder
from trialogue_lab.ledger.runs.provenance import describe_session
from trialogue_lab.ledger.runs.results import (
    CLAIMS,
    DONE,
    FILES,
    LATE,
    Result,
    hash_file,
    open_result,
    read_json,
)

Row = Mapping[str, Any]
"""One measurement: strings, numbers, booleans or None, by column."""

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]*")


class MeasuredPart(NamedTuple):
    """The measurements of a finished task ("part") of a run.

    Args:
        part: Name of the task.
        rows: The measurements, with the task's name in the column `part`.
        started: Start time in seconds since the epoch.
        finished: End time in seconds since the epoch.
        models: Properties of the models that were used.
    """

    part: str
    rows: list[dict[str, Any]]
    started: float
    finished: float
    models: list[dict[str, str]]


def finish_part(part: str, rows: Sequence[Row], started: float, models: list[dict[str, str]]) -> MeasuredPart:
    """Record that a task of a run has finished now, with its measurements.

    Args:
        part: Name of the task.
        rows: Measurements of a run, one DataFrame per kind of measurement.
        started: Start time in seconds since the epoch.
        models: Properties of the models that were used.

    Returns:
        The measurements, with the current time as their end.

    Raises:
        InputError: A row has a column named `part` or a value that JSON cannot represent.
    """
    plain = []
    for row in rows:
        if "part" in row:
            raise InputError("row", dict(row), "the column 'part' is reserved: use another name")
        plain.append({"part": part, **{name: _to_scalar(name, value) for name, value in row.items()}})
    return MeasuredPart(part, plain, started, time.time(), models)


class Draft:
    """An unfinished result on disk. Use the context manager `hold_lock` to change it.

    Args:
        folder: Folder of the result.

    Attributes:
        artifacts: Folder of files shared by the tasks of the run, for example trained models.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._work = folder / "work"
        self._parts = self._work / "parts"
        self.artifacts = self._work / "artifacts"

    @cached_property
    def _session(self) -> dict[str, object]:
        return describe_session()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folders of the result and lock them against other processes.

        Raises:
            InputError: Another process has the lock.
        """
        make_folder(self._work)
        atomic_write(self._work / ".gitignore", "*\n")
        make_folder(self.artifacts)
        hint = "another process is running this config: wait until it ends, or stop it"
        with hold_lock(self._work / "lock", "result", str(self.folder), hint):
            yield

    def clear(self) -> None:
        """Delete all measurements of the result, but keep its registered claims.

        The file DONE is deleted first, so that the result is unfinished even if the deletion is interrupted.
        """
        with convert_write_errors(self.folder):
            (self.folder / DONE).unlink(missing_ok=True)
            for name in (*FILES, LATE, "report.html"):
                if name != CLAIMS:
                    (self.folder / name).unlink(missing_ok=True)
            for folder in (self.folder / "figures", self._parts, self.artifacts):
                shutil.rmtree(folder, ignore_errors=True)
        make_folder(self.artifacts)

    def register(self, config: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
        """Write the config of the run, and its claims unless they were written before.

        Args:
            config: Config values, by field.
            claims: Return value of `Claim.registration`, by claim id.
        """
        atomic_write(self.folder / "config.json", _to_json(config))
        if not (self.folder / CLAIMS).exists():
            registered = {"commit": self._session.get("commit"), "claims": claims}
            atomic_write(self.folder / CLAIMS, _to_json(registered))

    def contains(self, part: str) -> bool:
        """Return whether the measurements of a task are saved."""
        return self._part_file(part).is_file()

    def save(self, measured: MeasuredPart, session: Mapping[str, object] | None = None) -> None:
        """Save the measurements of a finished task.

        Args:
            measured: The task with its measurements.
            session: Provenance of the process that measured it (see `provenance.session`). By default, of this process.
        """
        content = {
            "started": measured.started,
            "finished": measured.finished,
            "session": self._session if session is None else session,
            "models": measured.models,
            "rows": measured.rows,
        }
        atomic_write(self._part_file(measured.part), json.dumps(content))

    def publish(
        self, parts: Sequence[str], estimates: Callable[[Sequence[Row]], Mapping[str, Any]]
    ) -> Result:
        """Combine the saved tasks into a finished result, and delete them.

        Args:
            parts: Names of the tasks, in the order of their rows.
            estimates: Function from all measurements to the contents of `estimates.json`.
        """
        contents = [read_json(self._part_file(part)) for part in parts]
        rows = [row for content in contents for row in content["rows"]]
        atomic_write(self.folder / "rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
        atomic_write(self.folder / "estimates.json", _to_json(estimates(rows)))
        atomic_write(self.folder / "provenance.json", _to_json(_combine_provenance(parts, contents)))
        done = {name: hash_file(self.folder / name) for name in FILES}
        atomic_write(self.folder / DONE, _to_json(done))
        shutil.rmtree(self._parts, ignore_errors=True)
        return open_result(self.folder)

    def _part_file(self, part: str) -> Path:
        if not _PART.fullmatch(part):
            raise InputError("part", part, "use only letters, digits and . _ = + - because it names a file")
        return self._parts / f"{part}.json"


def _combine_provenance(parts: Sequence[str], contents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    sessions = _remove_duplicates(content["session"] for content in contents)
    # Parts that an earlier version measured have no models.
    models = _remove_duplicates(model for content in contents for model in content.get("models", ()))
    seconds = [content["finished"] - content["started"] for content in contents]
    return {
        "started": _format_utc_time(min(content["started"] for content in contents)),
        "finished": _format_utc_time(max(content["finished"] for content in contents)),
        "seconds": round(sum(seconds), 3),
        "sessions": sessions,
        "models": models,
        "parts": {
            part: {
                "seconds": round(spent, 3),
                "session": sessions.index(content["session"]),
                "models": [models.index(model) for model in content.get("models", ())],
            }
            for part, spent, content in zip(parts, seconds, contents, strict=True)
        },
    }


def _remove_duplicates(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _format_utc_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _to_json(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"


def _to_scalar(name: str, value: Any) -> Any:
    """Convert NumPy and torch scalars to Python numbers. Raises `InputError` for values JSON cannot represent."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if getattr(value, "ndim", 1) == 0:
        return value.item()
    raise InputError(name, value, "use strings, numbers, booleans or None in rows")
