"""The file that samples are written to: one JSON line each, as they finish, and what a killed run left is kept.

Beside `FILE` lies `FILE.settings.json`, which says what decided the samples. A run with the same settings goes on where
the file ends; one with other settings is refused. While a run goes on, samples that have finished before their turn lie
in `FILE.waiting.jsonl`.
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
from trialogue.generation.output.sink import Key, Record, Sink, line_of
from trialogue.generation.prompts import Prompt, repeated
from trialogue.generation.settings import digest
from trialogue.storage import atomic_write, require_folder, writing

Own = Mapping[int | str, Mapping[str, Any]]


class FoundRecords(NamedTuple):
    """The records of a file by prompt and sample, and the bytes that they take."""

    records: dict[Key, Record]
    whole: int


class SampleFile(Sink):
    """An open output file, with the records that it had.

    Records that have finished before their turn lie in a second file beside it. Both files stay as they were until the
    first record is written: a run that fails before that costs no sample of an earlier one.
    """

    def __init__(
        self, file: BinaryIO, path: Path, found: FoundRecords, waiting: FoundRecords, settings: str
    ) -> None:
        super().__init__()
        self._file, self._path, self._settings, self._begun = file, path, settings, False
        self._whole, self._waiting_whole = found.whole, waiting.whole
        self.kept = found.records
        self.held = {key: record for key, record in waiting.records.items() if key not in self.kept}

    def append(self, record: Record) -> None:
        """Append a line, and pass it to the operating system."""
        self._begin()
        with writing(self._path):
            self._file.write(line_of(record))
            self._file.flush()

    def hold(self, key: Key, record: Record) -> None:
        """Append the record of the sample `key` to the file of those that wait, unless it is there already."""
        if key in self.held:
            return
        self._begin()
        self.held[key] = record
        path = _waiting_path(self._path)
        with writing(path), path.open("ab") as waiting:
            waiting.write(line_of(record))

    def settle(self) -> None:
        """Remove the file of records that wait."""
        self.held.clear()
        _waiting_path(self._path).unlink(missing_ok=True)

    def _begin(self) -> None:
        """Before the first record, cut off what is not kept, and write the settings."""
        if self._begun:
            return
        if not self.kept and not self.held:
            atomic_write(_settings_path(self._path), self._settings)
        for path, whole in ((self._path, self._whole), (_waiting_path(self._path), self._waiting_whole)):
            with writing(path), suppress(FileNotFoundError):
                os.truncate(path, whole)
        self._file.seek(self._whole)
        self._begun = True


@contextmanager
def opened(
    path: Path,
    identity: dict[str, Any],
    prompts: tuple[Prompt, ...],
    own: Own = MappingProxyType({}),
    *,
    force: bool = False,
) -> Iterator[SampleFile]:
    """Open `path` for the samples of `prompts` that `identity` decides; `force` begins anew with the first sample.

    What decides those of a prompt alone may be its `own`, by id.

    A torn last line, which a killed run may have left, is cut off by the first sample. Raises `InputError` where the
    file holds anything but samples of these settings and prompts, where another process is writing to it, or where it
    cannot be written.
    """
    require_regular(path)
    require_folder(path)
    given, path = path, path.absolute()
    with writing(path), path.open("ab"):
        pass  # Where nothing can be written, nobody else is writing.
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    with writing(path):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            hint = "another process is writing to it: choose another file"
            raise InputError("out", str(path), hint) from None
    try:
        found, waiting = (
            FoundRecords({}, 0) if force else _found(one, path, identity, prompts, own)
            for one in (path, _waiting_path(path))
        )
        with writing(path):
            file = path.open("r+b")
        with file:
            sink = SampleFile(file, path, found, waiting, _settings_text(identity))
            sink.where = f"kept in {given}; the same command goes on"
            yield sink
    finally:
        # While it is held: filelock tries anew where the file that it locked has lost its name.
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def require_own(path: Path, identity: dict[str, Any], prompts: tuple[Prompt, ...], own: Own) -> None:
    """Raise `InputError` where `path` holds anything but samples of `prompts` that `identity` and `own` decide."""
    _found(path.absolute(), path.absolute(), identity, prompts, own)


def require_regular(path: Path) -> None:
    """Raise `InputError` where `path` is a device, a pipe or "-": nothing can be gone on with there."""
    if str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
        hint = "it is no file that a run could go on with: leave it out for standard output, or name a file"
        raise InputError("out", str(path), hint)


def require_begun(path: Path) -> None:
    """Raise `InputError` unless `path` is empty or missing, or comes with the settings of a run that began it."""
    path = path.absolute()
    if _content(path) and _begun_with(path) is None:
        hint = "it is no file of samples: move it away, or choose another file for the output"
        raise InputError("out", str(path), hint)


def replace(path: Path, identity: dict[str, Any], records: Iterable[Record]) -> None:
    """Write a whole file of `records` that `identity` decides, in the place of what is there."""
    path = path.absolute()
    content = b"".join(map(line_of, records))
    atomic_write(_settings_path(path), _settings_text(identity))
    atomic_write(path, content)


def _settings_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.settings.json")


def _waiting_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.waiting.jsonl")


def _settings_text(identity: dict[str, Any]) -> str:
    record = {"run": digest(identity), "trialogue": __version__, "settings": identity}
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def _found(
    file: Path, path: Path, identity: dict[str, Any], prompts: tuple[Prompt, ...], own: Own
) -> FoundRecords:
    """What a `file` of the run that writes to `path` holds."""
    content = _content(file)
    if not content:
        return FoundRecords({}, 0)
    _require_same(path, identity)
    whole = content.rfind(b"\n") + 1
    places = {prompt.id: place for place, prompt in enumerate(prompts)}
    runs, kept = {prompt.id: digest(identity, own.get(prompt.id)) for prompt in prompts}, {}
    for number, line in enumerate(content[:whole].splitlines(), 1):
        try:
            record = json.loads(line)
            place, sample = places.get(record["id"]), record["sample"]
            same = record["run"] == runs.get(record["id"], digest(identity))
        except (ValueError, KeyError, TypeError):
            raise _refused(file, f"line {number} is no sample of a run") from None
        if not same:
            raise _refused(file, f"line {number} belongs to another run")
        if place is None or repeated(record) != prompts[place].given():
            raise _refused(file, f"line {number} has a prompt that is not among the prompts")
        kept[place, sample] = record
    return FoundRecords(kept, whole)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError("out", str(path), f"it cannot be read: {error.strerror or error}") from None


def _begun_with(path: Path) -> dict[str, Any] | None:
    """The settings of the run that began `path`, if there are any."""
    try:
        settings = json.loads(_settings_path(path).read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return settings if isinstance(settings, dict) else None


def _require_same(path: Path, identity: dict[str, Any]) -> None:
    """Raise `InputError` naming the first setting that differs from those the file was begun with."""
    begun = _begun_with(path)
    if begun is None:
        raise _refused(path, f"it does not come with its settings ({_settings_path(path).name})")
    for name in (*identity, *begun):
        if begun.get(name) != identity.get(name):
            hint = f"{path.name} was begun with {begun.get(name)!r}: choose another file, or begin anew with --force"
            raise InputError(name, identity.get(name), hint)


def _refused(path: Path, reason: str) -> InputError:
    return InputError("out", str(path), f"{reason}: choose another file, or begin anew with --force")
