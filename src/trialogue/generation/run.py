"""A run of `trialogue generate`: from settings to output lines, written as samples finish."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from trialogue.generation.batches import batches, draw_apart
from trialogue.generation.drawing import Drawer
from trialogue.generation.order import InOrder
from trialogue.generation.recording import AsFinished, Output
from trialogue.generation.records import log_weights
from trialogue.generation.sample_file import Key
from trialogue.generation.settings import Settings
from trialogue.generation.streaming import LiveText
from trialogue.generation.tries import Tries
from trialogue.samplers.importance import effective_sample_size


class Finished(NamedTuple):
    """The records of a run in the order of prompts and samples, and what this run, without an earlier one's, took.

    `kept` of the records were there before, `left_out` samples were drawn in advance and are none of them.
    """

    records: list[dict[str, Any]]
    kept: int
    left_out: int
    tokens: int
    seconds: float

    def accepted(self) -> dict[int | str, tuple[int, int]]:
        """By the id of each prompt, how many of its samples were accepted, and how many there are."""
        shares: dict[int | str, tuple[int, int]] = {}
        for record in self.records:
            accepted, samples = shares.get(record["id"], (0, 0))
            shares[record["id"]] = accepted + record["accepted"], samples + 1
        return shares

    def summary(self, weighted: bool) -> str:
        """The run in one line."""
        accepted = sum(record["accepted"] for record in self.records)
        parts = [f"{len(self.records)} samples, {accepted} accepted"]
        if len(self.records) == 1:
            reason = self.records[0]["reason"]
            parts = [f"1 sample, {'accepted' if reason is None else f'not accepted ({reason})'}"]
        if self.kept:
            parts[0] += f" ({self.kept} of the samples were there already)"
        if self.left_out:
            parts.append(f"{self.left_out} more drawn in advance and left out")
        if weighted and accepted:
            prompts: dict[Any, list[dict[str, Any]]] = {}
            for record in self.records:
                prompts.setdefault(record["id"], []).append(record)
            size = sum(
                effective_sample_size(torch.tensor(log_weights(records), dtype=torch.float64))
                for records in prompts.values()
                if any(record["accepted"] for record in records)
            )
            parts.append(f"effective sample size {size:.1f}")
        parts.append(f"{sum(record['queries'] for record in self.records)} queries")
        calls = sum(record["verifier_calls"] for record in self.records)
        if calls:
            drawn = sum(len(record["tokens"]) for record in self.records)
            each = f" ({calls / drawn:.3g} a token)" if drawn else ""
            parts.append(f"{calls} verifier calls{each}")
        if self.tokens:
            parts.append(f"{self.tokens / self.seconds:.1f} tokens/s")
        return ", ".join([*parts, f"{self.seconds:.1f} s"])


def run(
    settings: Settings,
    output: Output,
    *,
    live: LiveText | None = None,
    progress: bool = False,
    report: Callable[[str], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Finished:
    """Draw the samples that `output` does not hold yet, and write each as it finishes.

    Raises `InputError` for whatever of the settings cannot be used, out of memory among it. `report` is told what takes
    long before the first sample, `warn` what makes every step of it slow.
    """
    sampling = settings.sampling
    executor = settings.execution.opened(settings.machine.threads)
    tries = Tries(sampling, len(settings.prompts), output.kept)
    kept = {**output.kept, **output.held}
    writer = InOrder(output, tries) if settings.destination.ordered else AsFinished(output)

    def finish(key: Key, record: dict[str, Any]) -> None:
        for own, ready in tries.finish(key, record):
            writer.write(own, ready)

    def take(key: Key, record: dict[str, Any]) -> None:
        finish(key, record)
        if key not in output.kept:
            output.hold(key, record)

    for key, record in list(output.held.items()):
        finish(key, record)
    pending = tries.pending()
    tokens, began = 0, time.perf_counter()
    if pending and not executor.alone(len(batches(pending, settings))):
        tokens = draw_apart(settings, executor, tries, take, report=report, warn=warn)
    elif pending:
        if report is not None:
            report(f"loading {settings.inputs.model}")
        drawer = Drawer(settings, warn)
        began = time.perf_counter()
        while pending:
            tokens += drawer.draw(pending, take, live=live, progress=progress)
            pending = tries.pending()
        if warn is not None:
            for note in drawer.remarks:
                warn(note)
    if sampling.until is not None or not output.held:
        output.settle()
    keys = tries.keys()
    return Finished(
        [output.kept[key] for key in keys],
        kept=sum(key in kept for key in keys),
        left_out=tries.left_out,
        tokens=tokens,
        seconds=time.perf_counter() - began,
    )
