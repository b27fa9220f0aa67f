"""The sinks of `trialogue generate`: where its records are written."""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trialogue.errors import InputError
from trialogue.generation.output.live_text import printable

Key = tuple[int, int]
"""A sample: the place of its prompt among the prompts, and its own among the samples of that prompt."""
Record = dict[str, Any]
"""A sample as its output line describes it."""

_ELSEWHERE = "write to a file with --out FILE"


def line_of(record: Record) -> bytes:
    """Return a record as one line of JSON."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"


class Sink:
    """Records in memory.

    `kept` holds the records that are written, by prompt and sample. `held` holds those that have finished before
    their turn. `where` says what becomes of them if the run is interrupted.
    """

    where = "drawn; with --out they would be kept"

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
        """Keep the record of a sample that has finished before its turn."""
        self.held[key] = record

    def settle(self) -> None:
        """Drop the records that wait: the run is finished."""
        self.held.clear()

    def interrupted(self) -> None:
        """Save the records that wait: the run ends early."""


class StandardOutput(Sink):
    """Lines on standard output: JSON, or on a terminal the text with its log-weight or the reason of its rejection.

    Args:
        texts: Texts of the prompts by id, printed on a terminal before the samples of each prompt.
    """

    where = "written"

    def __init__(self, texts: Mapping[int | str, str]) -> None:
        super().__init__()
        if sys.stdout is None:
            raise InputError("stdout", None, f"it is closed: {_ELSEWHERE}")
        self._texts, self._prompt = texts, None

    def interrupted(self) -> None:
        """Write the records that wait, in order."""
        with suppress(InputError, BrokenPipeError):
            for key in sorted(self.held):
                self.write(key, self.held[key])

    def append(self, record: Record) -> None:
        """Write a record and flush it."""
        line = line_of(record)
        if sys.stdout.isatty():
            prompt = record["id"]
            line = _shown(record, None if prompt == self._prompt else self._texts[prompt]).encode()
            self._prompt = prompt
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # A reader that has seen enough is no mistake.
        except OSError as error:
            hint = f"it cannot be written: {error.strerror or error}: {_ELSEWHERE}"
            raise InputError("stdout", str(sys.stdout.name), hint) from error


def _shown(record: Record, prompt: str | None) -> str:
    """Return the text of a record with its log-weight or reason, below the `prompt` if one is given."""
    weight, reason = record["log_weight"], record["reason"]
    said = "accepted" if weight is None else f"{weight:+.2f}"
    text = printable(record["text"]) + ("" if reason is None else f"  [{reason}]")
    first, *others = text.split("\n")
    lines = [f"{'rejected' if reason is not None else said:>10}  {first}"]
    lines += [f"{'':10}  {line}" for line in others]
    if prompt is not None:
        lines.insert(0, printable(prompt))
    return "\n".join(lines) + "\n"
