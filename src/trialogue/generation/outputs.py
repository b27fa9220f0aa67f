"""A run with its output: to standard output or to a file that a killed run goes on with, and resampled by weight."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.generation.recording import Collected, Output, StandardOutput
from trialogue.generation.records import COSTS, log_weights
from trialogue.generation.run import Finished, run
from trialogue.generation.sample_file import opened, replace, require_begun, require_own, require_regular
from trialogue.generation.settings import Settings, digest
from trialogue.generation.streaming import LiveText
from trialogue.samplers.importance import draws

_NAMED = 5
_WEIGHTLESS = "every sample has weight zero"


def generate_to(
    settings: Settings,
    *,
    lines: bool = True,
    live: LiveText | None = None,
    progress: bool = False,
    report: Callable[[str], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> "Outcome":
    """Run, write the samples to where the settings say or to standard output, and say what came of it.

    Where samples are resampled the output holds, for each prompt, as many draws from its samples in proportion to
    their weights, all of the same weight; the weighted samples themselves are kept in `FILE.weighted.jsonl`. Without
    `lines` nothing goes to standard output. What finished before an error or Ctrl-C is kept: the `InputError` or
    `KeyboardInterrupt` says how much.
    """
    out, force, resample = settings.destination.out, settings.destination.force, settings.sampling.resample
    if out is None:
        output: Output = StandardOutput() if lines and not resample else Collected()
        where = "drawn; with --out they would be kept" if resample else "written"
        finished = _run(settings, output, where, live, progress, report, warn)
    elif not resample:
        with opened(out, settings.identity(), settings.prompts, settings.own, force=force) as file:
            finished = _run(settings, file, _kept_in(out), live, progress, report, warn)
    else:
        require_regular(out)
        weighted = out.with_name(f"{out.name.removesuffix('.jsonl')}.weighted.jsonl")
        if force:
            # Nobody has named this file, and so nobody has said that what is there may go.
            require_begun(weighted)
        else:
            require_own(out, _resampling(settings), settings.prompts, settings.own)
        with opened(weighted, settings.identity(), settings.prompts, settings.own, force=force) as file:
            finished = _run(settings, file, _kept_in(weighted), live, progress, report, warn)
            replace(out, _resampling(settings), _resampled(finished.records, settings))
    if resample:
        if out is None and lines:
            shown = StandardOutput()
            for record in _resampled(finished.records, settings):
                shown.write(record)
        _require_weights(finished.records, settings)
    return Outcome(
        finished.summary(weighted=settings.sampler.weighted),
        tuple(_remarks(finished, settings)),
        all(accepted >= settings.sampling.wanted for accepted, _ in finished.accepted().values()),
    )


class Outcome(NamedTuple):
    """A run in one line, `remarks` on what that hides, and whether all samples were accepted that were asked for."""

    summary: str
    remarks: tuple[str, ...]
    complete: bool


def _remarks(finished: Finished, settings: Settings) -> Iterator[str]:
    """That nothing was accepted, and why; or which prompts were given up; that a sampler does not follow the rule."""
    sampling = settings.sampling
    reasons = Counter(record["reason"] for record in finished.records)
    if None not in reasons and (len(finished.records) > 1 or sampling.until is not None):
        (reason, count), *others = reasons.most_common()
        share = f" ({count} of them)" if others else ""
        yield f"none of {len(finished.records)} samples was accepted: {reason}{share}"
    elif sampling.until is not None:
        lacking = [
            f"{name!r} ({accepted} of {tries})"
            for name, (accepted, tries) in finished.accepted().items()
            if accepted < sampling.until
        ]
        if lacking:
            yield (
                f"fewer than {sampling.until} of {sampling.most_tries} tries were accepted of the "
                f"prompt{'s' * (len(lacking) > 1)} with id {_listed(lacking)}: raise --max-tries"
            )
    if settings.sampler.uses == "nothing" and settings.has_rules and set(reasons) != {None}:
        yield (
            f"the sampler {sampling.sampler} draws without the rule, which judges what comes out: "
            "--sampler masked-decoding draws under it"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _run(
    settings: Settings,
    output: Output,
    where: str,
    live: LiveText | None,
    progress: bool,
    report: Callable[[str], None] | None,
    warn: Callable[[str], None] | None,
) -> Finished:
    """`run`; what cuts it short says how many samples there are, and `where`."""
    try:
        return run(settings, output, live=live, progress=progress, report=report, warn=warn)
    except (InputError, KeyboardInterrupt) as error:
        whole = (
            f" of {settings.sampling.n * len(settings.prompts)}" if settings.sampling.until is None else ""
        )
        output.interrupted()
        number = len(output.kept) + len(output.held)
        there = f"{number}{whole} samples are {where}"
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted: {there}") from error
        if not number:
            raise
        raise InputError(error.field, error.value, f"{error.hint} ({there})") from error


def _kept_in(path: Path) -> str:
    return f"kept in {path}; the same command goes on"


def _resampling(settings: Settings) -> dict[str, Any]:
    """What decides resampled records: a weighted run must not go on with them, as if they were its own."""
    return settings.identity() | {"resample": True}


def _resampled(records: list[dict[str, Any]], settings: Settings) -> Iterator[dict[str, Any]]:
    """As many records of each prompt, drawn in proportion to their weights; `source` is the sample that was drawn.

    Each weighs its prompt's mean weight. A prompt without weight has one record, whose costs are those of all its
    samples.
    """
    own = settings.own
    for prompt, samples in zip(settings.prompts, _by_prompt(records, settings), strict=True):
        run_name = digest(_resampling(settings), own.get(prompt.id))
        weights = torch.tensor(log_weights(samples), dtype=torch.float64)
        mean = float(weights.logsumexp(0)) - math.log(len(samples))
        if mean == -math.inf:
            spent = {cost: sum(record[cost] for record in samples) for cost in (*COSTS, "seconds")}
            nothing: dict[str, Any] = {
                "text": "",
                "tokens": [],
                "ended": None,
                "log_prob": None,
                "log_weight": None,
                **({"log_probs": []} if "log_probs" in samples[0] else {}),
            }
            refused = {"accepted": False, "reason": _WEIGHTLESS, "source": None}
            yield samples[0] | nothing | refused | spent | {"sample": 0, "run": run_name}
            continue
        drawn = draws(weights, settings.sampling.wanted, settings.sampling.seed, prompt.stream(0)).tolist()
        for sample, source in enumerate(drawn):
            yield samples[source] | {
                "sample": sample,
                "log_weight": mean,
                "source": source,
                "run": run_name,
            }


def _by_prompt(records: list[dict[str, Any]], settings: Settings) -> list[list[dict[str, Any]]]:
    samples: dict[Any, list[dict[str, Any]]] = {prompt.id: [] for prompt in settings.prompts}
    for record in records:
        samples[record["id"]].append(record)
    return list(samples.values())


def _require_weights(records: list[dict[str, Any]], settings: Settings) -> None:
    """Raise `InputError` that names the prompts none of whose samples has weight."""
    without = [
        samples[0]["id"]
        for samples in _by_prompt(records, settings)
        if max(log_weights(samples), default=0.0) == -math.inf
    ]
    if without:
        named = _listed(list(map(repr, without)))
        hint = f"{_WEIGHTLESS} of the prompt{'s' if len(without) > 1 else ''} with id {named}: draw more samples, "
        hint += f"or raise the budget ({len(settings.prompts) - len(without)} of {len(settings.prompts)} prompts are "
        raise InputError("resample", True, hint + "resampled)")
