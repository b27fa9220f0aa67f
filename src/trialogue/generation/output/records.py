"""Samples as records: the fields of an output line, which the server's answers share."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trialogue.generation.output.outcomes import SampleOutcome, verdicts
from trialogue.generation.output.sink import Record
from trialogue.generation.settings import GenerationSettings, Sampling
from trialogue.generation.verifiers.specs import Built
from trialogue.models.hub.opening import TextModel
from trialogue.samplers import Sample, Samples

COSTS = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")


def outcome_of(sample: Sample, verdict: SampleOutcome, *, weighted: bool) -> dict[str, Any]:
    """Return what became of a sample, as JSON values.

    `log_prob` is null if a token was appended without a call of the model. `log_weight` is null if the sampler is not
    `weighted`, since all accepted samples then count alike, and if the sample is not accepted: it has weight zero.
    """
    return {
        "accepted": verdict.accepted,
        "ended": verdict.ended,
        "reason": verdict.reason,
        "log_prob": finite(sample.log_prob),
        "log_weight": finite(sample.log_weight) if weighted and verdict.accepted else None,
        "value": verdict.value,
    }


def cost_of(sample: Sample) -> dict[str, float]:
    """Return the costs of a sample."""
    return {**{name: getattr(sample, name) for name in COSTS}, "seconds": round(sample.seconds, 6)}


def records_of(
    samples: Samples,
    keys: Sequence[tuple[int, int]],
    oracle: TextModel,
    built: Sequence[Sequence[Built]],
    *,
    settings: GenerationSettings,
    runs: Sequence[str],
) -> list[Record]:
    """Return the output lines of `samples`.

    `keys` holds the place of the prompt of each sample, and the place of the sample among those of the prompt.
    `built` are the verifiers of each prompt, and `runs` the names of their runs.
    """
    sampling = settings.sampling
    said = verdicts(
        samples,
        [built[place] for place, _ in keys],
        sampler=settings.sampler,
        tokenization=oracle.tokenization,
        eos=oracle.eos,
        cut=sampling.cuts,
        longest=sampling.longest,
        context=oracle.max_length,
        stop=sampling.stop,
    )
    followed = followed_config(oracle.generation_config, sampling)
    records = []
    for (place, number), sample, verdict in zip(keys, samples, said, strict=True):
        outcome = outcome_of(sample, verdict, weighted=settings.sampler.weighted)
        value = outcome.pop("value")
        if sample.token_log_probs is not None:
            outcome["log_probs"] = list(map(finite, sample.token_log_probs))
        records.append(
            {
                "id": settings.prompts[place].id,
                "sample": number,
                **settings.prompts[place].given(),
                "text": sample.text,
                "tokens": list(sample.tokens),
                **outcome,
                "value": value,
                "generation_config": followed,
                **cost_of(sample),
                "run": runs[place],
            }
        )
    return records


def followed_config(config: Mapping[str, Any], sampling: Sampling) -> dict[str, dict[str, Any]]:
    """Return which settings of the model's generation config are "used" in the run, and which are "ignored".

    The tokens that end a text are the model's. Other settings are those of the command, which may agree with them.
    """
    holding = {
        **sampling.truncation,
        "max_new_tokens": sampling.longest,
        "do_sample": sampling.temperature > 0,
    }
    holding["top_k"] = holding["top_k"] or 0
    used = {
        name: value
        for name, value in config.items()
        if name == "eos_token_id" or (name in holding and holding[name] == value)
    }
    return {"used": used, "ignored": {name: value for name, value in config.items() if name not in used}}


def finite(number: float) -> float | None:
    """Return `number`, or None if it is not finite, which JSON cannot write."""
    return number if math.isfinite(number) else None
