"""A run with its output: to standard output or to a file that a killed run goes on with, and resampled by weight."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from trialogue.errors import InputError
from trialogue.generation.recording import Collected, Output, StandardOutput
from trialogue.generation.records import log_weights
from trialogue.generation.run import Finished, run
from trialogue.generation.sample_file import line_of, opened
from trialogue.generation.settings import Settings
from trialogue.generation.streaming import LiveText
from trialogue.inference.importance import draws
from trialogue.storage import atomic_write


def generate_to(
    settings: Settings,
    out: Path | None,
    *,
    force: bool = False,
    resample: bool = False,
    lines: bool = True,
    live: LiveText | None = None,
    progress: bool = False,
    report: Callable[[str], None] | None = None,
) -> str:
    """Run, write the samples to `out` or to standard output, and return a summary in one line.

    With `resample` the output holds, for each prompt, as many draws from its samples in proportion to their weights,
    all of the same weight; the weighted samples themselves are kept in `FILE.weighted.jsonl`. Without `lines` nothing
    goes to standard output. What finished before an
    error or Ctrl-C is kept: the `InputError` or `KeyboardInterrupt` says how much.
    """
    if resample and not _is_weighted(settings.walk):
        raise InputError("resample", True, f"samples of the walk {settings.walk_name} have no weights")
    if out is None:
        output: Output = StandardOutput() if lines and not resample else Collected()
        where = "drawn; with --out they would be kept" if resample else "written"
        finished = _run(settings, output, where, live, progress, report)
        if lines and resample:
            for record in _resampled(finished.records, settings):
                StandardOutput().write(record)
    else:
        drawn = out.with_name(f"{out.name.removesuffix('.jsonl')}.weighted.jsonl") if resample else out
        with opened(drawn, settings.sampling(), settings.prompts, force=force) as file:
            where = f"kept in {drawn}; the same command goes on"
            finished = _run(settings, file, where, live, progress, report)
            if resample:
                atomic_write(out, b"".join(map(line_of, _resampled(finished.records, settings))))
    return finished.summary(weighted=_is_weighted(settings.walk))


def _run(
    settings: Settings,
    output: Output,
    where: str,
    live: LiveText | None,
    progress: bool,
    report: Callable[[str], None] | None,
) -> Finished:
    """`run`; what cuts it short says how many samples there are, and `where`."""
    try:
        return run(settings, output, live=live, progress=progress, report=report)
    except (InputError, KeyboardInterrupt) as error:
        there = f"{len(output.kept)} of {settings.n * len(settings.prompts)} samples are {where}"
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted: {there}") from error
        if not output.kept:
            raise
        raise InputError(error.field, error.value, f"{error.mend} ({there})") from error


def _is_weighted(walk: Any) -> bool:
    """Whether the samples of `walk` have weights: log of target over proposal."""
    nothing: Any = SimpleNamespace(lengths=torch.zeros(0, dtype=torch.int64), vocab_size=1 << 62)
    return hasattr(walk.init(nothing), "log_weight")


def _resampled(records: list[dict[str, Any]], settings: Settings) -> Iterator[dict[str, Any]]:
    """As many records of each prompt, drawn in proportion to their weights; `source` is the sample that was drawn.

    Each weighs its prompt's mean weight.
    """
    n = settings.n
    for place in range(len(settings.prompts)):
        own = records[place * n : (place + 1) * n]
        weights = torch.tensor(log_weights(own), dtype=torch.float64)
        mean = float(weights.logsumexp(0)) - math.log(n)
        for sample, source in enumerate(draws(weights, n, settings.seed, place).tolist()):
            yield own[source] | {"sample": sample, "log_weight": mean, "source": source}
