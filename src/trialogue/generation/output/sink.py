"""Outputs to which `trialogue generate` writes its records."""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trialogue.errors import InputError
from trialogue.generation.field_confidence import format_confidence
from trialogue.generation.output.live_text import printable

Key = tuple[int, int]
"""Index of the prompt, and index of the sample among the samples of the prompt."""
Record = dict[str, Any]
"""Output record of a sample, which is written as one JSON line."""

_USE_FILE = "write to a file with --out FILE"


def json_line(record: Record) -> bytes:
    """Return an output record as one line of UTF-8 JSON with a line break.

    Args:
        record: Output record of a sample.
    """
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"


class Sink:
    """Base class of outputs of a run. This class only stores the records in memory.

    Attributes:
        kept: Written records, by prompt index and sample index.
        held: Waiting records, which cannot be written yet because an earlier sample is unfinished, by prompt
            index and sample index.
        tables: Folder for states that samples share, or None if they are not stored.
        where: Text that completes "N samples are ..." in the message about an interrupted run.
    """

    where = "generated; use --out to save them"
    tables: Path | None = None

    def __init__(self) -> None:
        self.kept: dict[Key, Record] = {}
        self.held: dict[Key, Record] = {}

    def write(self, key: Key, record: Record) -> None:
        """Write a record and remove it from the waiting records.

        Args:
            key: Index of the prompt and index of the sample.
            record: Output record of the sample.
        """
        self.append(record)
        self.kept[key] = record
        self.held.pop(key, None)

    def append(self, record: Record) -> None:
        """Write a record to the output. The default implementation does nothing.

        Args:
            record: Output record of a sample.
        """

    def hold(self, key: Key, record: Record) -> None:
        """Add a record to the waiting records.

        Args:
            key: Index of the prompt and index of the sample.
            record: Output record of the sample.
        """
        self.held[key] = record

    def discard_waiting(self) -> None:
        """Remove all waiting records at the end of the run."""
        self.held.clear()

    def save_waiting(self) -> None:
        """Save the waiting records after an interruption. The default implementation does nothing."""


class StandardOutput(Sink):
    """Output that writes records to standard output.

    A terminal shows the text of each sample with its log-weight or the reason for its rejection, and with the
    confidence of its fields if it was computed. Pipes and files receive JSON lines.

    Args:
        texts: Prompt texts by prompt id. On a terminal, each is printed before the samples of its prompt.

    Raises:
        InputError: If standard output is closed.
    """

    where = "written"

    def __init__(self, texts: Mapping[int | str, str]) -> None:
        super().__init__()
        if sys.stdout is None:
            raise InputError("stdout", None, f"it is closed: {_USE_FILE}")
        self._texts, self._prompt = texts, None

    def save_waiting(self) -> None:
        """Write the waiting records, ordered by prompt and sample."""
        with suppress(InputError, BrokenPipeError):
            for key in sorted(self.held):
                self.write(key, self.held[key])

    def append(self, record: Record) -> None:
        """Write a record and flush standard output.

        Args:
            record: Output record of a sample.

        Raises:
            InputError: If standard output cannot be written.
        """
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
    """Return the text of a record with log-weight or rejection reason and confidence, after the `prompt` if given."""
    weight, reason = record["log_weight"], record["reason"]
    label = "accepted" if weight is None else f"{weight:+.2f}"
    text = printable(record["text"]) + ("" if reason is None else f"  [{reason}]")
    first, *others = text.split("\n")
    lines = [f"{'rejected' if reason is not None else label:>10}  {first}"]
    lines += [f"{'':10}  {line}" for line in others]
    if record.get("confidence"):
        lines.append(f"confidence  {printable(format_confidence(record))}")
    if prompt is not None:
        lines.insert(0, printable(prompt))
    return "\n".join(lines) + "\n"
