"""Finished results on disk, in folders `<results>/<study>/<hash>/`.

A result is a folder with these files:

    config.json      study, version, preset and all values of the config, whose hash is the folder's name
    claims.json      the claims saved before the run ("registered"), and the commit
    provenance.json  code, command, library versions, device and times
    rows.jsonl       one measurement per line, as Python's `json` writes it (including NaN and Infinity)
    estimates.json   estimates of the claims' statistics when the run ended
    DONE             SHA-256 hashes of the five files above, written last (a folder without it is not a result)
    late.json        estimates of claims added, or statistics corrected, after the run
    figures/*.svg    figures of the rows
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pandas import DataFrame

from trialogue.errors import InputError
from trialogue.storage import compute_sha256
from trialogue_lab.ledger.claims.claims import Registration
from trialogue_lab.ledger.claims.verdicts import Estimates
from trialogue_lab.ledger.stored import COMMITTED as COMMITTED

PRESETS = ("smoke", "pilot", "default", "night", "weekend", "week", "paper")
"""Names of presets (named configs), from small to large.

"smoke" takes seconds, "default" minutes, "night", "weekend" and "week" hours. "pilot" is a trial run with its own
seeds, and "paper" has the published settings.
"""

COUNTING: tuple[str, ...] = ("default", "night", "weekend", "week", "paper")
"""Presets large enough to test claims. The largest finished one is used."""

CLAIMS, ESTIMATES = "claims.json", "estimates.json"

FILES = ("config.json", CLAIMS, "provenance.json", "rows.jsonl", ESTIMATES)
"""Files whose hashes are in DONE."""

DONE = "DONE"

LATE = "late.json"
"""File with estimates of claims added or corrected after the run."""

ORIGINS = "origins.json"
"""File with the origin ("published" or "ours") of claims that were saved without one."""

ADDED: Mapping[str, bool] = {"added": True}
"""Metadata of a config field that was added after results had been committed (see `config_values`)."""

RUNS: Path = Path("runs")
"""Default folder for new results."""


def search_folders(results: str | Path | None = None) -> list[Path]:
    """Return the folders that are searched for results, in order.

    Args:
        results: The only folder to search. By default, `COMMITTED`, `./results` and `./runs`.
    """
    if results is not None:
        return [Path(results)]
    own = Path("results")
    same = own.is_dir() and COMMITTED.is_dir() and own.samefile(COMMITTED)
    return [folder for folder in (COMMITTED, *([] if same else [own]), RUNS) if folder.is_dir()] or [RUNS]


def config_values(config: Any) -> dict[str, Any]:
    """Return the values of a config dataclass by field, as JSON values.

    Fields declared with `metadata=ADDED` are omitted while they have their default value. Such fields can be
    added without changing the hashes of existing results.

    Raises:
        InputError: A value has no JSON representation.
    """
    try:
        values: dict[str, Any] = json.loads(json.dumps(config, allow_nan=False, default=_list_fields))
    except (TypeError, ValueError) as error:
        raise InputError("config", config, f"use values that JSON can represent: {error}") from error
    return values


def _list_fields(config: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"{type(config).__name__} has no JSON representation")
    return {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if not (field.metadata.get("added") and getattr(config, field.name) == field.default)
    }


def config_hash(study: str, version: int, values: Mapping[str, Any]) -> str:
    """Return the hash of a config, with 12 hexadecimal digits. It does not distinguish 1 from 1.0.

    Args:
        study: Name of the study.
        version: Version of the study.
        values: Return value of `config_values`.
    """
    canonical = json.dumps([study, version, _to_plain_value(values)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _to_plain_value(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _to_plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain_value(item) for item in value]
    return value


@dataclass(frozen=True, eq=False)
class Result:
    """A finished result on disk. Create it with `open_result`, which verifies its files.

    Args:
        folder: Folder of the result.
        study: Name of the study.
        version: Version of the study when the result was measured.
        preset: Name of the config, None if it is not a named one.
        config: All config values, by field.
    """

    folder: Path
    study: str
    version: int
    preset: str | None
    config: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """Hash of study, version and config, which is also the folder's name."""
        return self.folder.name

    @cached_property
    def registration(self) -> Registration:
        """The claims that were saved before the run started."""
        registered = read_json(self.folder / CLAIMS)
        if "commit" in registered:
            return Registration(registered["claims"])
        # Old results were registered without origins, which were added in a separate file.
        origins = self.folder / ORIGINS
        return Registration(registered, read_json(origins) if origins.is_file() else {})

    @property
    def estimates(self) -> Estimates:
        """The values of all statistics of claims, one number per replication, by claim id and version of the statistic.

        They were computed at the end of the run, or later for claims added or corrected since.
        """
        late = self.folder / LATE
        stored: dict[str, dict[int, list[float]]] = {}
        for identity, entry in read_json(self.folder / ESTIMATES).items():
            stored[identity] = {entry["version"]: entry["estimates"]}
        for identity, entries in (read_json(late) if late.is_file() else {}).items():
            for entry in entries:
                stored.setdefault(identity, {}).setdefault(entry["version"], entry["estimates"])
        return stored

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Code version, command, library versions, machine and times of the run."""
        return read_json(self.folder / "provenance.json")

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The measurements in order, one dict each. The column `part` names the task of the run."""
        text = (self.folder / "rows.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    @cached_property
    def rows(self) -> DataFrame:
        """All measurements as one table."""
        return DataFrame(self.records)


def corrupted_error(folder: Path, what: str) -> InputError:
    """Return the error for a result with missing, unreadable or inconsistent files.

    Args:
        folder: Folder of the result.
        what: Description of the problem.
    """
    return InputError("result", str(folder), f"corrupted, {what}: delete the folder and run the study again")


def read_json(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file of a result.

    Raises:
        InputError: The file cannot be read or has no JSON object.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise corrupted_error(path.parent, f"{path.name} cannot be read") from error
    if not isinstance(values, dict):
        raise corrupted_error(path.parent, f"{path.name} is not a JSON object")
    return values


def hash_file(path: Path) -> str:
    """Return the SHA-256 hash of a file of a result.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        return compute_sha256(path)
    except OSError as error:
        raise corrupted_error(path.parent, f"{path.name} cannot be read") from error


def is_finished(folder: Path) -> bool:
    """Return whether the folder has the file DONE, which is written last."""
    return (folder / DONE).is_file()


def open_result(folder: Path) -> Result:
    """Open a finished result and verify the hashes of its files.

    Raises:
        InputError: The result is unfinished, or a file does not match its hash.
    """
    if not is_finished(folder):
        raise InputError("result", str(folder), "not a finished result: run the study to the end")
    done = read_json(folder / DONE)
    if sorted(done) != sorted(FILES):
        raise corrupted_error(folder, "DONE does not list its files")
    for name in FILES:
        if hash_file(folder / name) != done[name]:
            raise corrupted_error(folder, f"{name} does not have the hash in DONE")
    result = Result(folder.resolve(), **read_json(folder / "config.json"))
    if config_hash(result.study, result.version, result.config) != result.hash:
        raise corrupted_error(folder, "its name is not the hash of its config")
    return result


def find_result(reference: str | Path, results: str | Path | None = None) -> Result:
    """Return the finished result that `reference` names.

    Args:
        reference: A folder, the beginning of a hash, `study@hash`, or the name of a study. A study stands for its
            newest version and largest preset, in the first folder with a result.
        results: Folder of results. By default, all of `search_folders`.

    Raises:
        InputError: No result or more than one matches, or a matching result is corrupted.
    """
    if Path(reference).is_dir():
        return open_result(Path(reference))
    folders = search_folders(results)
    for folder in folders:
        found = _find_in(str(reference), folder)
        if found:
            return found
    looked_in = " or ".join(map(str, folders))
    study = str(reference).partition("@")[0]
    known = sorted(
        {f"{study}@{done.parent.name}" for folder in folders for done in (folder / study).glob("*/DONE")}
    )
    advice = f"use {' or '.join(known)}" if known else "see `trialogue ledger`"
    hint = f"no finished result in {looked_in} has this name: {advice}"
    if results is None and not RUNS.is_dir():
        hint += (
            f". Your own runs are searched in the folder {RUNS} of the current folder, which does not exist"
        )
    raise InputError("result", str(reference), hint)


def finished_results(study: str, results: Path, warn: Callable[[str], object]) -> list[Result]:
    """Return the finished results of a study, in the order in which they finished.

    Args:
        study: Name of the study.
        results: Folder of results.
        warn: Called with a one-line message for each corrupted result. These results are left out.
    """
    finished = []
    for done in sorted((results / study).glob(f"*/{DONE}")):
        try:
            finished.append(open_result(done.parent))
        except InputError as error:
            warn(str(error))
    return sorted(finished, key=lambda result: (str(result.provenance["finished"]), result.hash))


def _find_in(name: str, results: Path) -> Result | None:
    study, at, prefix = name.rpartition("@")
    folders = [done.parent for done in sorted(results.glob(f"*/*/{DONE}"))]
    of_study = [open_result(folder) for folder in folders if not at and folder.parent.name == name]
    best = max(map(_rank, of_study), default=None)
    found = [result for result in of_study if _rank(result) == best] or [
        open_result(folder)
        for folder in folders
        if folder.name.startswith(prefix) and study in ("", folder.parent.name)
    ]
    if len(found) > 1:
        choices = ", ".join(f"{result.study}@{result.hash}" for result in found)
        raise InputError("result", name, f"ambiguous: use one of {choices}")
    return found[0] if found else None


def _rank(result: Result) -> tuple[int, int]:
    return result.version, PRESETS.index(result.preset) if result.preset in PRESETS else -1


def load_rows(reference: str | Path, results: str | Path | None = None) -> DataFrame:
    """Return the measurements of a finished result as a DataFrame, one per row.

    Args:
        reference: A folder, the beginning of a hash, `study@hash`, or the name of a study (see `find_result`).
        results: Folder of results. By default, all of `search_folders`.

    Example:
        `load_rows("dyck-backtracking")`
    """
    return find_result(reference, results).rows
