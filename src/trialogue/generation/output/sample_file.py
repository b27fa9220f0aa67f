"""Output file with one JSON line per finished sample, from which an interrupted run can be resumed.

`FILE.settings.json` stores the settings that determine the samples. A run with the same settings continues at
the end of the file, and a run with other settings raises an error. During a run, `FILE.waiting.jsonl` stores
samples that finished before an earlier sample.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

from filelock import FileLock, Timeout

from trialogue import __version__
from trialogue.errors import InputError
from trialogue.generation.output.sink import Key, Record, Sink, json_line
from trialogue.generation.prompts import Prompt, copied_fields
from trialogue.generation.settings import digest
from trialogue.storage import atomic_write, convert_write_errors, require_folder

PromptSettings = Mapping[int | str, Mapping[str, Any]]


class FoundRecords(NamedTuple):
    """Output records read from a file.

    Attributes:
        records: Records by prompt index and sample index.
        complete_bytes: Size of all complete lines in bytes. An incomplete last line follows them if the run
            was interrupted while writing.
    """

    records: dict[Key, Record]
    complete_bytes: int


class SampleFile(Sink):
    """Output file to which a run appends its samples.

    A second file stores waiting records, which are samples that finished before an earlier sample. Neither file changes
    before the first record is written. A run that fails earlier loses no samples.

    Args:
        file: The output file, opened for reading and writing.
        path: Path of the output file.
        found: Records in the output file.
        waiting: Records in the file of waiting records.
        settings: Text to write to the settings file.
    """

    def __init__(
        self, file: BinaryIO, path: Path, found: FoundRecords, waiting: FoundRecords, settings: str
    ) -> None:
        super().__init__()
        self._file, self._path, self._settings, self._is_started = file, path, settings, False
        self.tables = path.with_name(f"{path.name}.tables")
        self._complete_bytes, self._waiting_complete_bytes = found.complete_bytes, waiting.complete_bytes
        self.kept = found.records
        self.held = {key: record for key, record in waiting.records.items() if key not in self.kept}

    def append(self, record: Record) -> None:
        """Append an output record as one line and flush it to the operating system.

        Args:
            record: Output record of a sample.
        """
        self._start_writing()
        with convert_write_errors(self._path):
            self._file.write(json_line(record))
            self._file.flush()

    def hold(self, key: Key, record: Record) -> None:
        """Add a record to the file of waiting records, unless it is already there.

        Args:
            key: Index of the prompt and index of the sample.
            record: Output record of the sample.
        """
        if key in self.held:
            return
        self._start_writing()
        self.held[key] = record
        path = _waiting_path(self._path)
        with convert_write_errors(path), path.open("ab") as waiting:
            waiting.write(json_line(record))

    def discard_waiting(self) -> None:
        """Delete the file of waiting records at the end of the run."""
        self.held.clear()
        _waiting_path(self._path).unlink(missing_ok=True)

    def _start_writing(self) -> None:
        """Before the first record, write the settings and truncate incomplete or discarded lines."""
        if self._is_started:
            return
        if not self.kept and not self.held:
            atomic_write(_settings_path(self._path), self._settings)
        for path, complete_bytes in (
            (self._path, self._complete_bytes),
            (_waiting_path(self._path), self._waiting_complete_bytes),
        ):
            with convert_write_errors(path), suppress(FileNotFoundError):
                os.truncate(path, complete_bytes)
        self._file.seek(self._complete_bytes)
        self._is_started = True


@contextmanager
def open_sample_file(
    path: Path,
    identity: dict[str, Any],
    prompts: tuple[Prompt, ...],
    prompt_settings: PromptSettings = MappingProxyType({}),
    *,
    force: bool = False,
) -> Iterator[SampleFile]:
    """Open an output file for the samples of a run, as a context manager.

    Samples of an earlier run with the same settings are read from it. The incomplete last line of an
    interrupted run is removed when the first sample is written.

    Args:
        path: Path of the output file.
        identity: Settings that determine the samples (`GenerationSettings.identity`).
        prompts: Prompts of the run.
        prompt_settings: Settings that differ for single prompts, by prompt id
            (`GenerationSettings.prompt_identities`).
        force: Whether to discard existing samples when the first sample is written.

    Yields:
        The open file.

    Raises:
        InputError: If the file contains samples of other settings or prompts, another process is writing to
            it, or it is not writable.
    """
    require_regular(path)
    require_folder(path)
    given, path = path, path.absolute()
    with convert_write_errors(path), path.open("ab"):
        pass  # This checks write access before the lock is created.
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    with convert_write_errors(path):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            hint = "use another file: another process is writing to this one"
            raise InputError("out", str(path), hint) from None
    try:
        found, waiting = (
            FoundRecords({}, 0) if force else _read_records(one, path, identity, prompts, prompt_settings)
            for one in (path, _waiting_path(path))
        )
        with convert_write_errors(path):
            file = path.open("r+b")
        with file:
            sink = SampleFile(file, path, found, waiting, _settings_text(identity))
            sink.where = f"saved in {given}; run the same command to continue"
            yield sink
    finally:
        # Remove the file before releasing the lock: filelock retries if the file it has locked was removed.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def require_matching(
    path: Path, identity: dict[str, Any], prompts: tuple[Prompt, ...], prompt_settings: PromptSettings
) -> None:
    """Raise `InputError` if a file contains samples of another run. A missing or empty file passes.

    Args:
        path: Path of the file.
        identity: Settings that determine the samples (`GenerationSettings.identity`).
        prompts: Prompts of the run.
        prompt_settings: Settings that differ for single prompts, by prompt id.

    Raises:
        InputError: If the file contains anything else.
    """
    _read_records(path.absolute(), path.absolute(), identity, prompts, prompt_settings)


def require_regular(path: Path) -> None:
    """Raise `InputError` if a run could not be resumed from an output file.

    Args:
        path: Path of the file, which may be missing.

    Raises:
        InputError: If `path` is a device, a pipe or "-".
    """
    if str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
        hint = "use a regular file, or leave it out for standard output"
        raise InputError("out", str(path), hint)


def require_sample_file(path: Path) -> None:
    """Raise `InputError` if overwriting a file could lose something other than samples.

    Args:
        path: Path of the file.

    Raises:
        InputError: If the file is not empty and has no settings file, which accompanies every file of samples.
    """
    path = path.absolute()
    if _content(path) and _read_settings(path) is None:
        hint = "use another output file or move this one: it is not a file of samples"
        raise InputError("out", str(path), hint)


def replace(path: Path, identity: dict[str, Any], records: Iterable[Record]) -> None:
    """Overwrite a file of samples and its settings file with new records.

    Args:
        path: Path of the file of samples.
        identity: Settings that determine the samples.
        records: Output records to write.
    """
    path = path.absolute()
    content = b"".join(map(json_line, records))
    atomic_write(_settings_path(path), _settings_text(identity))
    atomic_write(path, content)


def _settings_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.settings.json")


def _waiting_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.waiting.jsonl")


def _settings_text(identity: dict[str, Any]) -> str:
    record = {"run": digest(identity), "trialogue": __version__, "settings": identity}
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _read_records(
    file: Path,
    path: Path,
    identity: dict[str, Any],
    prompts: tuple[Prompt, ...],
    prompt_settings: PromptSettings,
) -> FoundRecords:
    """Return the records in `file`, which belongs to the run that writes to `path`."""
    content = _content(file)
    if not content:
        return FoundRecords({}, 0)
    _require_same_settings(path, identity)
    complete_bytes = content.rfind(b"\n") + 1
    places = {prompt.id: place for place, prompt in enumerate(prompts)}
    runs, kept = {prompt.id: digest(identity, prompt_settings.get(prompt.id)) for prompt in prompts}, {}
    for number, line in enumerate(content[:complete_bytes].splitlines(), 1):
        try:
            record = json.loads(line)
            place, sample = places.get(record["id"]), record["sample"]
            is_same = record["run"] == runs.get(record["id"], digest(identity))
        except (ValueError, KeyError, TypeError):
            raise _unusable(file, f"line {number} is not a sample") from None
        if not is_same:
            raise _unusable(file, f"line {number} belongs to a run with other settings")
        if place is None or copied_fields(record) != prompts[place].given():
            raise _unusable(file, f"line {number} has a prompt that is not in the input")
        kept[place, sample] = record
    return FoundRecords(kept, complete_bytes)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError("out", str(path), f"it cannot be read: {error.strerror or error}") from None


def _read_settings(path: Path) -> dict[str, Any] | None:
    """Return the settings of the run that created `path`, or None if they cannot be read."""
    try:
        settings = json.loads(_settings_path(path).read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return settings if isinstance(settings, dict) else None


def _require_same_settings(path: Path, identity: dict[str, Any]) -> None:
    """Raise `InputError` with the first setting that differs from the settings file, if any."""
    stored = _read_settings(path)
    if stored is None:
        raise _unusable(path, f"its settings file {_settings_path(path).name} is missing or invalid")
    for name in (*identity, *stored):
        if stored.get(name) != identity.get(name):
            hint = f"{path.name} was created with {stored.get(name)!r}: use another file or overwrite it with --force"
            raise InputError(name, identity.get(name), hint)


def _unusable(path: Path, reason: str) -> InputError:
    return InputError("out", str(path), f"use another file or overwrite it with --force: {reason}")
