"""Destinations of the output records of `trialogue generate`."""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trialogue.errors import InputError
from trialogue.generation.output.live_text import printable

Key = tuple[int, int]
"""Index of the prompt, and index of the sample among the samples of the prompt."""
Record = dict[str, Any]
"""Output record of a sample, which is written as one JSON line."""

_USE_FILE = "write to a file with --out FILE"


def json_line(record: Record) -> bytes:
    """Return a record as one line of JSON."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"


class Sink:
    """Destination that stores records in memory.

    Attributes:
        kept: Written records, by prompt index and sample index.
        held: Records that finished before an earlier sample.
        where: Description of where the records are if the run is interrupted.
    """

    where = "generated; use --out to save them"

    def __init__(self) -> None:
        self.kept: dict[Key, Record] = {}
        self.held: dict[Key, Record] = {}

    def write(self, key: Key, record: Record) -> None:
        """Write the record of the sample `key`."""
        self.append(record)
        self.kept[key] = record
        self.held.pop(key, None)

    def append(self, record: Record) -> None:
        """Write one line."""

    def hold(self, key: Key, record: Record) -> None:
        """Store the record of a sample that finished before an earlier sample."""
        self.held[key] = record

    def discard_waiting(self) -> None:
        """Discard the waiting records at the end of the run."""
        self.held.clear()

    def save_waiting(self) -> None:
        """Save the waiting records when the run is interrupted."""


class StandardOutput(Sink):
    """Write records to standard output.

    A terminal shows each text with its log-weight or the reason for its rejection. Other outputs receive JSON
    lines.

    Args:
        texts: Prompt texts by id. On a terminal, each is printed before the samples of its prompt.
    """

    where = "written"

    def __init__(self, texts: Mapping[int | str, str]) -> None:
        super().__init__()
        if sys.stdout is None:
            raise InputError("stdout", None, f"it is closed: {_USE_FILE}")
        self._texts, self._prompt = texts, None

    def save_waiting(self) -> None:
        """Write the waiting records in order."""
        with suppress(InputError, BrokenPipeError):
            for key in sorted(self.held):
                self.write(key, self.held[key])

    def append(self, record: Record) -> None:
        """Write a record and flush it."""
        line = json_line(record)
        if sys.stdout.isatty():
            prompt = record["id"]
            line = _format_record(record, None if prompt == self._prompt else self._texts[prompt]).encode()
            self._prompt = prompt
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # The reader closed the pipe, which is not an error.
        except OSError as error:
            hint = f"it cannot be written: {error.strerror or error}: {_USE_FILE}"
            raise InputError("stdout", str(sys.stdout.name), hint) from error


def _format_record(record: Record, prompt: str | None) -> str:
    """Return the text of a record with its log-weight or rejection reason, after the `prompt` if given."""
    weight, reason = record["log_weight"], record["reason"]
    label = "accepted" if weight is None else f"{weight:+.2f}"
    text = printable(record["text"]) + ("" if reason is None else f"  [{reason}]")
    first, *others = text.split("\n")
    lines = [f"{'rejected' if reason is not None else label:>10}  {first}"]
    lines += [f"{'':10}  {line}" for line in others]
    if prompt is not None:
        lines.insert(0, printable(prompt))
    return "\n".join(lines) + "\n"
