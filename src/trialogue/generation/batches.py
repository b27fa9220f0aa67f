"""The samples of a run in batches, which the workers of an executor draw: each with a model of its own."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.executors import Executor
from trialogue.generation.drawing import Drawer
from trialogue.generation.sample_file import Key
from trialogue.generation.settings import Settings
from trialogue.generation.tries import Tries

_ROWS = 64
"""Rows of a batch, where --batch-size does not say how many: so much work is done again where a worker dies."""


class Batch(NamedTuple):
    """What a worker brings back: the records of samples, their tokens, and what there is to warn of."""

    records: list[tuple[Key, dict[str, Any]]]
    tokens: int
    notes: tuple[str, ...]


def batches(pending: Sequence[Key], settings: Settings) -> list[tuple[Key, ...]]:
    """The samples in batches that are drawn by one worker at once."""
    rows = settings.machine.batch_size or _ROWS
    size = max(1, rows // settings.sampler.rows_per_sample)
    return [tuple(pending[start : start + size]) for start in range(0, len(pending), size)]


def draw_apart(
    settings: Settings,
    executor: Executor,
    tries: Tries,
    take: Callable[[Key, dict[str, Any]], None],
    *,
    report: Callable[[str], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> int:
    """Have all samples drawn that `tries` wants, and `take` take their records; returns how many tokens they have.

    Raises `InputError` where the verifiers of a worker are made of other files than this process sees.
    """
    device = settings.machine.device
    accelerated = device is None or device.startswith("cuda")
    runs = settings.runs()
    pending, tokens, warned = tries.pending(), 0, set[str]()
    lanes = len(batches(pending, settings))
    with executor.crew(partial(_drawing, settings), lanes, accelerated=accelerated) as crew:
        while pending:
            left = len(pending)
            for _, batch in crew.done([[keys] for keys in batches(pending, settings)]):
                for key, record in batch.records:
                    if record["run"] != runs[key[0]]:
                        verifier = settings.rule_of(settings.prompts[key[0]]).specs
                        hint = "a worker reads other files than this process: give all machines the same"
                        raise InputError("verifier", list(verifier), hint)
                    take(key, record)
                tokens += batch.tokens
                left -= len(batch.records)
                if report is not None:
                    report(f"{left} samples to draw")
                for note in dict.fromkeys(batch.notes):
                    if warn is not None and note not in warned:
                        warn(note)
                    warned.add(note)
            pending = tries.pending()
    return tokens


def _drawing(settings: Settings) -> Callable[[tuple[Key, ...]], Batch]:
    """In a worker: what draws a batch."""
    torch.set_num_threads(settings.machine.threads)
    notes: list[str] = []
    drawer = Drawer(settings, notes.append)

    def draw(keys: tuple[Key, ...]) -> Batch:
        records: list[tuple[Key, dict[str, Any]]] = []
        tokens = drawer.draw(keys, lambda key, record: records.append((key, record)))
        return Batch(records, tokens, (*notes, *drawer.remarks))

    return draw
