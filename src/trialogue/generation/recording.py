"""Where output lines go, and the observer of a run that writes them."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from torch import Tensor

from trialogue.errors import InputError
from trialogue.generation.records import records_of
from trialogue.generation.sample_file import Key, line_of
from trialogue.generation.settings import Settings
from trialogue.generation.streaming import LiveText, printable
from trialogue.generation.verifier_specs import Built
from trialogue.models.messages import conversation
from trialogue.models.opening import TextModel
from trialogue.samplers import Samples

_ELSEWHERE = "write to a file with --out FILE"


class Output(Protocol):
    """Where lines go, by prompt and sample: `kept` holds the records that are there, `held` those that have to wait."""

    kept: dict[Key, dict[str, Any]]
    held: dict[Key, dict[str, Any]]

    def write(self, record: dict[str, Any]) -> None:
        """Write a record."""
        ...

    def hold(self, key: Key, record: dict[str, Any]) -> None:
        """Keep the record of a sample that has finished before its turn."""
        ...

    def settle(self) -> None:
        """The run is over, and nothing waits any more."""
        ...

    def interrupted(self) -> None:
        """The run is over before its end: what waits is not to be lost."""
        ...


class Collected:
    """Records that are kept for later."""

    def __init__(self) -> None:
        self.kept: dict[Key, dict[str, Any]] = {}
        self.held: dict[Key, dict[str, Any]] = {}

    def write(self, record: dict[str, Any]) -> None:
        """Do nothing more: the run hands back all records in the end."""

    def hold(self, key: Key, record: dict[str, Any]) -> None:
        """Keep the record of a sample that has finished before its turn."""
        self.held[key] = record

    def settle(self) -> None:
        """Nothing waits any more."""
        self.held.clear()

    def interrupted(self) -> None:
        """Do nothing: nobody asks for what was drawn."""


class StandardOutput(Collected):
    """Lines on standard output: JSON, or on a terminal what one wants to see of a record."""

    def __init__(self) -> None:
        super().__init__()
        if sys.stdout is None:
            raise InputError("stdout", None, f"it is closed: {_ELSEWHERE}")
        self._prompt: object = None

    def interrupted(self) -> None:
        """Write what waits, in its order."""
        with suppress(InputError, BrokenPipeError):
            for key in sorted(self.held):
                self.write(self.held[key])
                self.kept[key] = self.held.pop(key)

    def write(self, record: dict[str, Any]) -> None:
        """Write a record; it is with its reader when the call returns."""
        line = line_of(record)
        if sys.stdout.isatty():
            asked = record["prompt"] if "prompt" in record else record["messages"]
            line = _shown(record, headed=asked != self._prompt).encode()
            self._prompt = asked
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise  # A reader that has seen enough is no mistake.
        except OSError as error:
            hint = f"it cannot be written: {error.strerror or error}: {_ELSEWHERE}"
            raise InputError("stdout", str(sys.stdout.name), hint) from error


def _shown(record: dict[str, Any], headed: bool) -> str:
    """The text of a record, with its log-weight or why it is not accepted, below the prompt where it is `headed`."""
    weight, reason = record["log_weight"], record["reason"]
    said = "accepted" if weight is None else f"{weight:+.2f}"
    text = printable(record["text"]) + ("" if reason is None else f"  [{reason}]")
    asked = record["prompt"] if "prompt" in record else conversation(record["messages"])[-1]["content"]
    heading = f"{printable(asked)}\n" if headed else ""
    first, *others = text.split("\n")
    lines = [
        f"{'rejected' if reason is not None else said:>10}  {first}",
        *(f"{'':10}  {line}" for line in others),
    ]
    return heading + "\n".join(lines) + "\n"


class AsFinished:
    """An `output` that is written to as samples finish."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def write(self, key: Key, record: dict[str, Any]) -> None:
        """Write the record of a sample."""
        self._output.write(record)
        self._output.kept[key] = record
        self._output.held.pop(key, None)


class Recorder:
    """An observer of `generate` that hands samples on as they finish, and shows the first while it grows.

    `runs` names the run of each prompt, `pending` the samples that are drawn, `starts` holds the lengths of their
    prompts in tokens; `take` takes the record of each.
    """

    def __init__(
        self,
        settings: Settings,
        runs: Sequence[str],
        oracle: TextModel,
        pending: Sequence[Key],
        starts: Sequence[int],
        built: Sequence[Sequence[Built]],
        take: Callable[[Key, dict[str, Any]], None],
        live: LiveText | None,
    ) -> None:
        self._settings, self._runs, self._oracle = settings, runs, oracle
        self._pending, self._starts = pending, starts
        self._built, self._take, self._live = built, take, live

    def moved(self, samples: Tensor, tokens: Tensor, lengths: Tensor) -> None:
        """Show the text so far."""
        if self._live is not None and len(samples):
            completion = tokens[0, self._starts[int(samples[0])] : int(lengths[0])].tolist()
            self._live.show(self._oracle.tokenization.text(completion, final=False))

    def filed(self, places: Tensor, samples: Samples) -> None:
        """Have the records of samples taken that have finished."""
        keys = [self._pending[place] for place in places.tolist()]
        records = records_of(
            samples,
            keys,
            self._oracle,
            self._built,
            settings=self._settings,
            runs=self._runs,
        )
        for key, record in zip(keys, records, strict=True):
            if self._live is not None:
                self._live.end(record["text"])
            self._take(key, record)
