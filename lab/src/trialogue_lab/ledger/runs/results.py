"""Finished results on disk, `<results>/<study>/<hash>/`, read back whole or not at all.

config.json      study, version, preset and every value of the config; the folder's name is their hash
claims.json      the claims as they were registered when the run began, with the commit
provenance.json  code, command, library versions, device and times
rows.jsonl       one measurement a line, as Python's `json` writes it (NaN and Infinity as such)
estimates.json   what the claims' statistics gave when the run ended
DONE             SHA-256 of each of the five files above; written last, and without it there is no result
late.json        the same as estimates.json of claims added later and of corrected statistics, as first judged
figures/*.svg    drawn from the rows
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
"""Names of presets in order of size. They take seconds, use pilot seeds, take minutes, hours, more hours, and are as
published."""

COUNTING = ("default", "night", "weekend", "paper")
"""The presets whose results count in the ledger: the largest that is finished."""

CLAIMS, ESTIMATES = "claims.json", "estimates.json"

FILES = ("config.json", CLAIMS, "provenance.json", "rows.jsonl", ESTIMATES)
"""What DONE vouches for."""

DONE = "DONE"

LATE = "late.json"
"""Estimates of claims that were added, or whose statistics were corrected, when the result was finished."""

ORIGINS = "origins.json"
"""Whose the claims of a result are that did not say so when its run began."""


ADDED: Mapping[str, bool] = {"added": True}
"""Metadata of a config field that is newer than committed results, see `config_values`."""

_PACKAGE = Path(__file__).resolve().parents[2]
SHIPPED = (_PACKAGE if (_PACKAGE / "results").is_dir() else _PACKAGE.parents[1]) / "results"
"""The committed results: those of an installed package, or of the checkout that an editable install points to."""

RUNS = Path("runs")
"""The folder that runs write to unless another one is given."""


def folders_to_read(results: str | Path | None = None) -> list[Path]:
    """Return the folders in which results are looked up, in this order.

    Args:
        results: A folder of results. It is the only one if it is given. By default, the committed results come first,
            then `./results`, which may hold the committed results of a study of your own, then `./runs`.
    """
    if results is not None:
        return [Path(results)]
    own = Path("results")
    same = own.is_dir() and SHIPPED.is_dir() and own.samefile(SHIPPED)
    return [folder for folder in (SHIPPED, *([] if same else [own]), RUNS) if folder.is_dir()] or [RUNS]


def config_values(config: Any) -> dict[str, Any]:
    """Return every value of a config dataclass as JSON represents it.

    A field that was added after results had been committed is left out while it has its default, so that the hashes
    of those results stay valid. Declare such a field with `dataclasses.field(default=..., metadata=ADDED)`.

    Raises:
        InputError: A value has no JSON representation.
    """
    try:
        values: dict[str, Any] = json.loads(json.dumps(config, allow_nan=False, default=_fields_of))
    except (TypeError, ValueError) as error:
        raise InputError("config", config, f"holds a value that JSON cannot: {error}") from error
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
    """Twelve hexadecimal digits that name a config of a study; 1 and 1.0 are the same value."""
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


@dataclass(frozen=True)
class Result:
    """A finished result; `open_result` makes one after holding every file against DONE."""

    folder: Path

    @cached_property
    def _config(self) -> dict[str, Any]:
        return read_json(self.folder / "config.json")

    @property
    def study(self) -> str:
        """Name of the study."""
        return str(self._config["study"])

    @property
    def version(self) -> int:
        """Version of the study that wrote the rows."""
        return int(self._config["version"])

    @property
    def preset(self) -> str | None:
        """The preset whose config this is, or None for a config of the user's own."""
        preset = self._config["preset"]
        return None if preset is None else str(preset)

    @property
    def config(self) -> dict[str, Any]:
        """Every value of the config."""
        return dict(self._config["config"])

    @property
    def hash(self) -> str:
        """Hash of study, version and config: the folder's name."""
        return self.folder.name

    @cached_property
    def registration(self) -> Registration:
        """The claims as the run began."""
        registered = read_json(self.folder / CLAIMS)
        if "commit" in registered:
            return Registration(registered["claims"])
        # Results of before claims said whose they are: that was set later, once for all of a result's claims.
        origins = self.folder / ORIGINS
        return Registration(registered, read_json(origins) if origins.is_file() else {})

    @property
    def estimates(self) -> Estimates:
        """What each claim's statistic gave when the run ended, or the claim was added or corrected."""
        late = self.folder / LATE
        stored: dict[str, dict[int, list[float]]] = {}
        for identity, entry in read_json(self.folder / ESTIMATES).items():
            stored.setdefault(identity, {})[entry["version"]] = entry["estimates"]
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
        """The measurements in order; the entry `part` names the part of the run."""
        text = (self.folder / "rows.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    @cached_property
    def rows(self) -> DataFrame:
        """The measurements of all kinds as one table."""
        return DataFrame(self.records)


def corrupted(folder: Path, what: str) -> InputError:
    """The error for a folder whose files do not belong together."""
    return InputError("result", str(folder), f"corrupted, {what}: delete the folder and run the study again")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a result; raises `InputError` that names the folder where it cannot be read."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise corrupted(path.parent, f"{path.name} cannot be read") from error
    if not isinstance(values, dict):
        raise corrupted(path.parent, f"{path.name} is not a JSON object")
    return values


def digest(path: Path) -> str:
    """SHA-256 of a file of a result; raises `InputError` that names the folder where it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise corrupted(path.parent, f"{path.name} cannot be read") from error


def is_finished(folder: Path) -> bool:
    """Whether the folder claims to hold a finished result."""
    return (folder / DONE).is_file()


def open_result(folder: Path) -> Result:
    """Open a finished result; raises `InputError` where it is unfinished or a file is not what DONE says."""
    if not is_finished(folder):
        raise InputError("result", str(folder), "not a finished result: run the study to the end")
    done = read_json(folder / DONE)
    if sorted(done) != sorted(FILES):
        raise corrupted(folder, "DONE does not list its files")
    for name in FILES:
        if digest(folder / name) != done[name]:
            raise corrupted(folder, f"{name} is not the file that DONE vouches for")
    result = Result(folder.resolve())
    if config_hash(result.study, result.version, result.config) != result.hash:
        raise corrupted(folder, "its name is not the hash of its config")
    return result


def find_result(reference: str | Path, results: str | Path | None = None) -> Result:
    """Return the finished result that `reference` names.

    Args:
        reference: A folder, the beginning of a hash, `study@hash`, or the name of a study. The name of a study alone
            means the newest version at the largest preset in the first folder that has a result of it.
        results: A folder of results. By default, the folders of `folders_to_read`.

    Raises:
        InputError: No result or more than one matches, or a result that matches is corrupted.
    """
    if Path(reference).is_dir():
        return open_result(Path(reference))
    folders = folders_to_read(results)
    for folder in folders:
        found = _named(str(reference), folder)
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
        warn: Called with one line for each result that is corrupted, which is left out.
    """
    finished = []
    for done in sorted((results / study).glob(f"*/{DONE}")):
        try:
            finished.append(open_result(done.parent))
        except InputError as error:
            warn(str(error))
    return sorted(finished, key=lambda result: (str(result.provenance["finished"]), result.hash))


def _named(name: str, results: Path) -> Result | None:
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
        raise InputError("result", name, f"ambiguous, name one of {choices}")
    return found[0] if found else None


def _rank(result: Result) -> tuple[int, int]:
    return result.version, PRESETS.index(result.preset) if result.preset in PRESETS else -1


def load_rows(reference: str | Path, results: str | Path | None = None) -> DataFrame:
    """Rows of the finished result that `reference` names (see `find_result`), one measurement a row."""
    return find_result(reference, results).rows
