"""An unfinished result: parts measured one by one, kept when the run is killed, published together.

Everything unfinished lies in the folder `work` inside the result's folder, which git ignores: the finished
parts, and the artifacts (trained models) that parts of the same run share.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

from trialogue.errors import InputError
from trialogue.storage import atomic_write, locked, make_folder, writing
from trialogue_lab.ledger.runs.provenance import session
from trialogue_lab.ledger.runs.results import (
    CLAIMS,
    DONE,
    FILES,
    LATE,
    Result,
    digest,
    open_result,
    read_json,
)

Row = Mapping[str, Any]
"""One measurement: text, number, truth value or None by name of column."""

_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]*")


class Measured(NamedTuple):
    """A finished part: its rows, when it was begun and finished (seconds since the epoch), the models that answered."""

    part: str
    rows: list[dict[str, Any]]
    started: float
    finished: float
    models: list[dict[str, str]]


def finished_part(part: str, rows: Sequence[Row], started: float, models: list[dict[str, str]]) -> Measured:
    """What is kept of the `rows` of a part that ends now; raises `InputError` for a row that is no plain one."""
    plain = [_checked({"part": part, **row}, row) for row in rows]
    return Measured(part, plain, started, time.time(), models)


class Draft:
    """An unfinished result in `folder`; hold it with `locked` while working on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._work = folder / "work"
        self._parts = self._work / "parts"
        self.artifacts = self._work / "artifacts"

    @cached_property
    def _session(self) -> dict[str, object]:
        return session()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folders and keep other processes out; raises `InputError` where one is at work already."""
        make_folder(self._work)
        atomic_write(self._work / ".gitignore", "*\n")
        make_folder(self.artifacts)
        hint = "another process is running this config: wait for it, or stop it"
        with locked(self._work / "lock", "result", str(self.folder), hint):
            yield

    def clear(self) -> None:
        """Forget what was measured before, DONE first, so that no moment shows a finished result without rows.

        The claims stay as they were registered: measuring anew makes no later claim an earlier one.
        """
        with writing(self.folder):
            (self.folder / DONE).unlink(missing_ok=True)
            for name in (*FILES, LATE, "report.html"):
                if name != CLAIMS:
                    (self.folder / name).unlink(missing_ok=True)
            for folder in (self.folder / "figures", self._parts, self.artifacts):
                shutil.rmtree(folder, ignore_errors=True)
        make_folder(self.artifacts)

    def register(self, config: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
        """Write the config and, unless an earlier session of this run has, the claims as they now stand."""
        atomic_write(self.folder / "config.json", _pretty(config))
        if not (self.folder / CLAIMS).exists():
            registered = {"commit": self._session.get("commit"), "claims": claims}
            atomic_write(self.folder / CLAIMS, _pretty(registered))

    def has(self, part: str) -> bool:
        """Whether the part is finished."""
        return self._part(part).is_file()

    def keep(self, measured: Measured, session: Mapping[str, object] | None = None) -> None:
        """Keep a finished part in one atomic write; `session` is that of the process that measured it, if another."""
        content = {
            "started": measured.started,
            "finished": measured.finished,
            "session": self._session if session is None else session,
            "models": measured.models,
            "rows": measured.rows,
        }
        atomic_write(self._part(measured.part), json.dumps(content))

    def publish(
        self, parts: Sequence[str], estimates: Callable[[Sequence[Row]], Mapping[str, Any]]
    ) -> Result:
        """Write rows, provenance and what `estimates` makes of the rows, then DONE; forget the parts."""
        contents = [self._read(part) for part in parts]
        rows = [row for content in contents for row in content["rows"]]
        atomic_write(self.folder / "rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
        atomic_write(self.folder / "estimates.json", _pretty(estimates(rows)))
        atomic_write(self.folder / "provenance.json", _pretty(_provenance(parts, contents)))
        done = {name: digest(self.folder / name) for name in FILES}
        atomic_write(self.folder / DONE, _pretty(done))
        shutil.rmtree(self._parts, ignore_errors=True)
        return open_result(self.folder)

    def _part(self, part: str) -> Path:
        if not _PART.fullmatch(part):
            raise InputError("part", part, "must be letters, digits and . _ = + - only, as it names a file")
        return self._parts / f"{part}.json"

    def _read(self, part: str) -> dict[str, Any]:
        return read_json(self._part(part))


def _provenance(parts: Sequence[str], contents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    sessions = _different(content["session"] for content in contents)
    # Parts that an earlier version kept say nothing of models.
    models = _different(model for content in contents for model in content.get("models", ()))
    seconds = [content["finished"] - content["started"] for content in contents]
    return {
        "started": _clock(min(content["started"] for content in contents)),
        "finished": _clock(max(content["finished"] for content in contents)),
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


def _different(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=1) + "\n"


def _checked(row: dict[str, Any], given: Row) -> dict[str, Any]:
    if "part" in given:
        raise InputError("row", dict(given), "the column 'part' is the engine's own: name yours otherwise")
    return {name: _scalar(name, value) for name, value in row.items()}


def _scalar(name: str, value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "ndim", 1) == 0:
        return item()
    raise InputError(name, value, "a row holds text, numbers, truth values and None only")
