"""Function that runs `trialogue generate`, and optional resampling of its samples."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import torch

from trialogue.errors import InputError
from trialogue.generation.output.live_text import Feedback
from trialogue.generation.output.records import COSTS
from trialogue.generation.output.sample_file import (
    open_sample_file,
    replace,
    require_matching,
    require_regular,
    require_sample_file,
)
from trialogue.generation.output.sink import Record, Sink, StandardOutput
from trialogue.generation.scheduler import RunResult, run
from trialogue.generation.settings import GenerationSettings, digest
from trialogue.samplers.importance import draws, effective_sample_size

_MAX_LISTED = 5
_FEW_EFFECTIVE_SAMPLES = 10
_WEIGHTLESS = "every sample has weight zero"
_NO_FEEDBACK = Feedback()


class RunOutcome(NamedTuple):
    """Summary of a run, as it is shown to the user.

    Attributes:
        summary: The numbers of samples and their cost. A second line has the number of effective samples per 100 model
            calls, if there are several samples of a prompt that are weighted or exact.
        remarks: Warnings about the result.
        complete: Whether each prompt has the requested number of accepted samples.
    """

    summary: str
    remarks: tuple[str, ...]
    complete: bool


def generate_to(
    settings: GenerationSettings, feedback: Feedback = _NO_FEEDBACK, *, lines: bool = True
) -> RunOutcome:
    """Run `trialogue generate`: generate samples and write them to the output file or to standard output.

    With the option `resample`, the output has the requested number of equally weighted samples for each
    prompt. They are chosen at random in proportion to the weights of the original samples, which are written
    to `FILE.weighted.jsonl`. Samples that finished before an error or Ctrl-C are saved.

    Args:
        settings: Settings of the run.
        feedback: Progress output.
        lines: Whether to write samples to standard output if there is no output file.

    Returns:
        Summary and warnings.

    Raises:
        InputError: If the settings cannot be used. The message contains the number of saved samples.
        KeyboardInterrupt: If the user interrupts the run. The message contains the number of saved samples.
    """
    out, resample = settings.destination.out, settings.sampling.resample
    texts = {prompt.id: prompt.text for prompt in settings.prompts}
    with ExitStack() as stack:
        if out is None:
            sink: Sink = StandardOutput(texts) if lines and not resample else Sink()
        else:
            path = _weighted_path(settings) if resample else out
            file = open_sample_file(
                path,
                settings.identity(),
                settings.prompts,
                settings.prompt_identities,
                force=settings.destination.force,
            )
            sink = stack.enter_context(file)
        result = _run_with_save_message(settings, sink, feedback)
        if resample and out is not None:
            replace(out, _resampling(settings), _resample_records(result.records, settings))
    if resample:
        shown = StandardOutput(texts) if out is None and lines else Sink()
        for record in _resample_records(result.records, settings):
            shown.append(record)
        _require_weights(result.records, settings)
    return RunOutcome(
        _summary(result, settings),
        tuple(_remarks(result, settings)),
        all(
            accepted >= settings.sampling.accepted_per_prompt
            for accepted, _ in _count_accepted(result).values()
        ),
    )


def _run_with_save_message(settings: GenerationSettings, sink: Sink, feedback: Feedback) -> RunResult:
    """Call `run`. Errors and interruptions report the number and location of the finished samples."""
    try:
        return run(settings, sink, feedback)
    except (InputError, KeyboardInterrupt) as error:
        sampling = settings.sampling
        total = f" of {sampling.n * len(settings.prompts)}" if sampling.until is None else ""
        sink.save_waiting()
        number = len(sink.kept) + len(sink.held)
        there = f"{number}{total} samples are {sink.where}"
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted: {there}") from error
        if not number:
            raise
        raise InputError(error.field, error.value, f"{error.hint} ({there})") from error


def _count_accepted(result: RunResult) -> dict[int | str, tuple[int, int]]:
    """Return the number of accepted samples and of all samples for each prompt id."""
    shares: dict[int | str, tuple[int, int]] = {}
    for record in result.records:
        accepted, samples = shares.get(record["id"], (0, 0))
        shares[record["id"]] = accepted + record["accepted"], samples + 1
    return shares


def _summary(result: RunResult, settings: GenerationSettings) -> str:
    """Return the summary of the run, see `RunOutcome`."""
    records = result.records
    accepted = sum(record["accepted"] for record in records)
    parts = [f"{len(records)} samples, {accepted} accepted"]
    if len(records) == 1:
        reason = records[0]["reason"]
        parts = [f"1 sample, {'accepted' if reason is None else f'not accepted ({reason})'}"]
    if result.kept:
        parts[0] += f" ({result.kept} of them from an earlier run)"
    if result.left_out:
        parts.append(f"{result.left_out} surplus samples discarded")
    model_calls = sum(record["queries"] for record in records)
    per_sample = f" ({model_calls / len(records):.3g} per sample)" if len(records) > 1 else ""
    parts.append(f"{model_calls} model calls{per_sample}")
    calls = sum(record["verifier_calls"] for record in records)
    if calls:
        drawn = sum(len(record["tokens"]) for record in records)
        per_token = f" ({calls / drawn:.3g} per token)" if drawn else ""
        parts.append(f"{calls} verifier calls{per_token}")
    if result.tokens:
        parts.append(f"{result.tokens / result.seconds:.1f} tokens/s")
    summary = ", ".join([*parts, f"{result.seconds:.1f} s"])
    sizes = _effective_sample_sizes(records, settings)
    if not sum(sizes) or not model_calls or len(records) <= len(settings.prompts):
        return summary
    exact = sum(map(len, _exact_samples(records, settings)))
    basis = f"{exact} exact samples" if exact == sum(sizes) else f"effective sample size {sum(sizes):.1f}"
    rate = 100 * sum(sizes) / model_calls
    return f"{summary}\neffective samples per 100 model calls: {rate:.3g} ({basis})"


def _remarks(result: RunResult, settings: GenerationSettings) -> Iterator[str]:
    """Yield warnings about rejected samples, fallbacks, low effective sample sizes and unused verifiers."""
    sampling = settings.sampling
    reasons = Counter(record["reason"] for record in result.records)
    if None not in reasons and (len(result.records) > 1 or sampling.until is not None):
        (reason, count), *others = reasons.most_common()
        share = f" ({count} of them)" if others else ""
        yield f"none of {len(result.records)} samples was accepted: {reason}{share}"
    elif sampling.until is not None:
        lacking = [
            f"{name!r} ({accepted} of {tries})"
            for name, (accepted, tries) in _count_accepted(result).items()
            if accepted < sampling.until
        ]
        if lacking:
            yield (
                f"fewer than {sampling.until} of {sampling.max_samples_per_prompt} samples were accepted for the "
                f"prompt{'s' * (len(lacking) > 1)} with id {_join_names(lacking)}: increase --max-tries"
            )
    for remark, count in Counter(record.get("remark") for record in result.records).items():
        if remark is not None:
            yield f"{count} of {len(result.records)} samples: {remark}"
    if settings.sampler.weighted and None in reasons:
        yield from _weight_remarks(result.records, settings)
    if settings.sampler.uses == "nothing" and settings.has_verifiers and set(reasons) != {None}:
        yield (
            f"the sampler {sampling.sampler} applies verifiers only to finished samples: use --sampler "
            "masked-decoding to apply them at every token"
        )


def _weight_remarks(records: list[Record], settings: GenerationSettings) -> Iterator[str]:
    """Yield a warning if the samples of a prompt have too small an effective sample size for their number."""
    low = [
        (size, len(samples))
        for samples, size in zip(
            _by_prompt(records, settings), _effective_sample_sizes(records, settings), strict=True
        )
        if 0 < size < min(_FEW_EFFECTIVE_SAMPLES, len(samples) / 2)
        and (settings.sampling.resample or len(samples) >= _FEW_EFFECTIVE_SAMPLES)
    ]
    if low:
        size, number = min(low)
        alternative = "a larger --max-attempts" if settings.sampler.is_exact else "--sampler exact"
        worst = f" of one prompt (the worst of {len(low)})" if len(settings.prompts) > 1 else ""
        yield (
            f"the {number} weighted samples{worst} are only worth {size:.1f} samples without weights (effective "
            f"sample size): do not estimate probabilities from them (use more samples, or {alternative})"
        )


def _effective_sample_sizes(records: list[Record], settings: GenerationSettings) -> list[float]:
    """Return the effective sample size of each prompt, the larger one of its weighted and of its exact samples.

    Resampling uses all samples with their weights. It is 0 if the sampler has neither weights nor exact samples.
    """
    sizes = [float(len(samples)) for samples in _exact_samples(records, settings)]
    if not settings.sampler.weighted:
        return sizes
    weighted = [
        effective_sample_size(torch.tensor(_log_weights(samples), dtype=torch.float64))
        for samples in _by_prompt(records, settings)
    ]
    return weighted if settings.sampling.resample else list(map(max, sizes, weighted))


def _exact_samples(records: list[Record], settings: GenerationSettings) -> list[list[Record]]:
    """Return the samples of each prompt that need no weights.

    A limit on model calls or steps that has stopped a sample favours short outputs, so the others are not exact.
    """
    sampling = settings.sampling
    has_budget = sampling.max_queries is not None or sampling.max_steps is not None
    is_exact = settings.sampler.is_exact and not (has_budget and any(not one["accepted"] for one in records))
    return [
        [one for one in samples if is_exact and one["accepted"] and "remark" not in one]
        for samples in _by_prompt(records, settings)
    ]


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return ", ".join(names[:_MAX_LISTED]) + more


def _weighted_path(settings: GenerationSettings) -> Path:
    """Return the path of the weighted samples. Raises `InputError` if the output cannot be written."""
    out = settings.destination.out
    assert out is not None
    require_regular(out)
    weighted = out.with_name(f"{out.name.removesuffix('.jsonl')}.weighted.jsonl")
    if settings.destination.force:
        # The user did not name this file, so it is replaced only if a run created it.
        require_sample_file(weighted)
    else:
        require_matching(out, _resampling(settings), settings.prompts, settings.prompt_identities)
    return weighted


def _resampling(settings: GenerationSettings) -> dict[str, Any]:
    """Return the settings of resampling, which tell a file of resampled samples from one of weighted samples."""
    return settings.identity() | {"resample": True}


def _resample_records(
    records: list[dict[str, Any]], settings: GenerationSettings
) -> Iterator[dict[str, Any]]:
    """Yield resampled records of each prompt, drawn in proportion to their weights.

    `source` is the index of the original sample. Every record has the mean weight of its prompt. A prompt
    without positive weights has one record, which contains the total cost of its samples.
    """
    extra = settings.prompt_identities
    for prompt, samples in zip(settings.prompts, _by_prompt(records, settings), strict=True):
        run_name = digest(_resampling(settings), extra.get(prompt.id))
        weights = torch.tensor(_log_weights(samples), dtype=torch.float64)
        mean = float(weights.logsumexp(0)) - math.log(len(samples))
        if mean == -math.inf:
            spent = {cost: sum(record[cost] for record in samples) for cost in (*COSTS, "seconds")}
            empty: dict[str, Any] = {
                "text": "",
                "tokens": [],
                "ended": None,
                "log_prob": None,
                "log_weight": None,
                **({"log_probs": []} if "log_probs" in samples[0] else {}),
            }
            refused = {"accepted": False, "reason": _WEIGHTLESS, "source": None}
            yield samples[0] | empty | refused | spent | {"sample": 0, "run": run_name}
            continue
        drawn = draws(
            weights, settings.sampling.accepted_per_prompt, settings.sampling.seed, prompt.stream(0)
        ).tolist()
        for sample, source in enumerate(drawn):
            yield samples[source] | {
                "sample": sample,
                "log_weight": mean,
                "source": source,
                "run": run_name,
            }


def _by_prompt(records: list[dict[str, Any]], settings: GenerationSettings) -> list[list[dict[str, Any]]]:
    samples: dict[Any, list[dict[str, Any]]] = {prompt.id: [] for prompt in settings.prompts}
    for record in records:
        samples[record["id"]].append(record)
    return list(samples.values())


def _require_weights(records: list[dict[str, Any]], settings: GenerationSettings) -> None:
    """Raise `InputError` with the ids of prompts for which all samples have weight zero."""
    without = [
        samples[0]["id"]
        for samples in _by_prompt(records, settings)
        if max(_log_weights(samples), default=0.0) == -math.inf
    ]
    if without:
        named = _join_names(list(map(repr, without)))
        hint = f"{_WEIGHTLESS} for the prompt{'s' if len(without) > 1 else ''} with id {named}: draw more samples "
        resampled = f"{len(settings.prompts) - len(without)} of {len(settings.prompts)} prompts are resampled"
        raise InputError("resample", True, f"{hint}or increase the budget ({resampled})")


def _log_weights(records: Iterable[Record]) -> list[float]:
    """Return the log-weights of records of a weighted sampler, -inf for records that are not accepted."""
    return [-math.inf if record["log_weight"] is None else record["log_weight"] for record in records]
