"""Finished results on disk, in folders `<results>/<study>/<hash>/`.

config.json      study, version, preset and all values of the config, whose hash is the folder's name
claims.json      the claims that were registered when the run began, and the commit
provenance.json  code, command, library versions, device and times
rows.jsonl       one measurement per line, as Python's `json` writes it (including NaN and Infinity)
estimates.json   estimates of the claims' statistics when the run ended
DONE             SHA-256 hashes of the five files above, written last (a folder without it is not a result)
late.json        estimates of claims that were added and of statistics that were corrected after the run
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
from trialogue.storage import sha256_of
from trialogue_lab.ledger.claims.claims import Registration
from trialogue_lab.ledger.claims.verdicts import Estimates

PRESETS = ("smoke", "pilot", "default", "night", "weekend", "paper")
"""Names of presets, from small to large.

"smoke" takes seconds, "default" minutes, "night" hours and "weekend" more hours. "pilot" has its own seeds, and "paper"
has the published settings.
"""

COUNTING = ("default", "night", "weekend", "paper")
"""Presets whose results count in the ledger. Of these, the largest finished one is used."""

CLAIMS, ESTIMATES = "claims.json", "estimates.json"

FILES = ("config.json", CLAIMS, "provenance.json", "rows.jsonl", ESTIMATES)
"""Files whose hashes are in DONE."""

DONE = "DONE"

LATE = "late.json"
"""File of estimates of claims that were added or corrected after the run."""

ORIGINS = "origins.json"
"""File of the origins of claims that were registered without an origin."""

ADDED: Mapping[str, bool] = {"added": True}
"""Metadata of a config field that is newer than committed results (see `config_values`)."""

_PACKAGE = Path(__file__).resolve().parents[2]
COMMITTED = (_PACKAGE if (_PACKAGE / "results").is_dir() else _PACKAGE.parents[1]) / "results"
"""Folder of the committed results, in an installed package or in the checkout of an editable installation."""

RUNS = Path("runs")
"""Default folder for the results of runs."""


def search_folders(results: str | Path | None = None) -> list[Path]:
    """Return the folders that are searched for results, in order.

    Args:
        results: The only folder to search. By default, the committed results are searched first, then `./results`,
            which can hold committed results of your own studies, then `./runs`.
    """
    if results is not None:
        return [Path(results)]
    own = Path("results")
    same = own.is_dir() and COMMITTED.is_dir() and own.samefile(COMMITTED)
    return [folder for folder in (COMMITTED, *([] if same else [own]), RUNS) if folder.is_dir()] or [RUNS]


def config_values(config: Any) -> dict[str, Any]:
    """Return the values of a config dataclass by field, as JSON represents them.

    If a field was added after results had been committed, it is omitted while it has its default value. The hashes of
    those results then stay valid. Declare such a field with `dataclasses.field(default=..., metadata=ADDED)`.

    Raises:
        InputError: A value has no JSON representation.
    """
    try:
        values: dict[str, Any] = json.loads(json.dumps(config, allow_nan=False, default=_fields_of))
    except (TypeError, ValueError) as error:
        raise InputError("config", config, f"use values that JSON can represent: {error}") from error
    return values


def _fields_of(config: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        raise TypeError(f"{type(config).__name__} has no JSON representation")
    return {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if not (field.metadata.get("added") and getattr(config, field.name) == field.default)
    }


def config_hash(study: str, version: int, values: Mapping[str, Any]) -> str:
    """Return the hash of a config as 12 hexadecimal digits. The values 1 and 1.0 have the same hash.

    Args:
        study: Name of the study.
        version: Version of the study.
        values: The values of the config, as `config_values` returns them.
    """
    canonical = json.dumps([study, version, _plain(values)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


@dataclass(frozen=True, eq=False)
class Result:
    """A finished result. Use `open_result` to open one, which verifies its files.

    Args:
        folder: The folder of the result.
        study: Name of the study.
        version: Version of the study when the result was measured.
        preset: Name of the preset, or None for any other config.
        config: All values of the config.
    """

    folder: Path
    study: str
    version: int
    preset: str | None
    config: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """Hash of study, version and config, which is the folder's name."""
        return self.folder.name

    @cached_property
    def registration(self) -> Registration:
        """The claims that were registered when the run began."""
        registered = read_json(self.folder / CLAIMS)
        if "commit" in registered:
            return Registration(registered["claims"])
        # Old results were registered without origins, which were added in a separate file.
        origins = self.folder / ORIGINS
        return Registration(registered, read_json(origins) if origins.is_file() else {})

    @property
    def estimates(self) -> Estimates:
        """Stored estimates of each claim by version of its statistic.

        They were computed when the run ended, or when the claim was added or corrected later.
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
        """Code, command, library versions, device and times of the run."""
        return read_json(self.folder / "provenance.json")

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """The measurements in order. The column `part` is the name of the part of the run."""
        text = (self.folder / "rows.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    @cached_property
    def rows(self) -> DataFrame:
        """The measurements of all kinds as one table."""
        return DataFrame(self.records)


def corrupted_error(folder: Path, what: str) -> InputError:
    """Return the error for a result folder with missing, unreadable or inconsistent files.

    Args:
        folder: The folder.
        what: Description of the inconsistency.
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


def digest(path: Path) -> str:
    """Return the SHA-256 hash of a file of a result.

    Raises:
        InputError: The file cannot be read.
    """
    try:
        return sha256_of(path)
    except OSError as error:
        raise corrupted_error(path.parent, f"{path.name} cannot be read") from error


def is_finished(folder: Path) -> bool:
    """Return whether the folder has a file DONE, which marks a finished result."""
    return (folder / DONE).is_file()


def open_result(folder: Path) -> Result:
    """Open a finished result and verify its files.

    Raises:
        InputError: The result is unfinished, or a file does not have the hash in DONE.
    """
    if not is_finished(folder):
        raise InputError("result", str(folder), "not a finished result: run the study to the end")
    done = read_json(folder / DONE)
    if sorted(done) != sorted(FILES):
        raise corrupted_error(folder, "DONE does not list its files")
    for name in FILES:
        if digest(folder / name) != done[name]:
            raise corrupted_error(folder, f"{name} does not have the hash in DONE")
    result = Result(folder.resolve(), **read_json(folder / "config.json"))
    if config_hash(result.study, result.version, result.config) != result.hash:
        raise corrupted_error(folder, "its name is not the hash of its config")
    return result


def find_result(reference: str | Path, results: str | Path | None = None) -> Result:
    """Return the finished result that `reference` names.

    Args:
        reference: A folder, the beginning of a hash, `study@hash`, or the name of a study. The name of a study stands
            for the newest version at the largest preset in the first folder with a result of this study.
        results: A folder of results. By default, the folders of `search_folders`.

    Raises:
        InputError: No result or more than one matches, or a result that matches is corrupted.
    """
    if Path(reference).is_dir():
        return open_result(Path(reference))
    folders = search_folders(results)
    for folder in folders:
        found = _find_in(str(reference), folder)
        if found:
            return found
    looked_in = " or ".join(map(str, folders))
    hint = f"no finished result in {looked_in} has this name: see `trialogue ledger`"
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
    """Return the result in the folder `results` that `name` refers to, or None."""
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
    """Return the measured rows of a finished result as a DataFrame, with one row per measurement.

    Args:
        reference: The result: a folder, the beginning of a hash, `study@hash`, or the name of a study (see
            `find_result`).
        results: A folder of results. By default, the committed results, `./results` and `./runs` are searched.

    Example:
        `load_rows("dyck-backtracking")`
    """
    return find_result(reference, results).rows
