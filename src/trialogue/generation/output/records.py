"""Conversion of samples to JSON records, for output files and server responses."""

from collections.abc import Mapping, Sequence
from typing import Any

from trialogue.display.numbers import finite_or_none
from trialogue.generation.field_confidence import confidence_record
from trialogue.generation.output.outcomes import SampleOutcome, sample_outcomes
from trialogue.generation.output.sink import Record
from trialogue.generation.settings import GenerationSettings, Sampling
from trialogue.generation.verifiers.specs import BuiltVerifier
from trialogue.models.hub.opening import TextModel
from trialogue.samplers import Sample, Samples

COSTS = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")


def make_outcome_record(sample: Sample, verdict: SampleOutcome, *, weighted: bool) -> dict[str, Any]:
    """Return the part of a sample's JSON record that describes its outcome and its log-probability.

    Args:
        sample: Finished sample.
        verdict: Outcome of the sample.
        weighted: Whether the sampler assigns importance weights.

    Returns:
        A dictionary with the keys "accepted", "ended", "reason", "log_prob", "log_weight" and "value", and "remark" if
        the sampler makes one on an accepted sample. "log_prob" is None if a token was appended without evaluating the
        model. "log_weight" is None if the sampler has no weights or the sample is not accepted (weight zero).
    """
    return {
        "accepted": verdict.accepted,
        "ended": verdict.ended,
        "reason": verdict.reason,
        "log_prob": finite_or_none(sample.log_prob),
        "log_weight": finite_or_none(sample.log_weight) if weighted and verdict.accepted else None,
        "value": verdict.value,
        **({"remark": sample.remark} if sample.remark is not None and verdict.accepted else {}),
    }


def make_cost_record(sample: Sample) -> dict[str, float]:
    """Return the part of a sample's JSON record that describes its computational cost.

    Args:
        sample: Finished sample.

    Returns:
        A dictionary with the counts named in `COSTS`, for example model queries and verifier calls, and the time in
        "seconds".
    """
    return {**{name: getattr(sample, name) for name in COSTS}, "seconds": round(sample.seconds, 6)}


def make_records(
    samples: Samples,
    keys: Sequence[tuple[int, int]],
    oracle: TextModel,
    built: Sequence[Sequence[BuiltVerifier]],
    *,
    settings: GenerationSettings,
    digests: Sequence[str],
) -> list[Record]:
    """Create the output records of finished samples.

    Args:
        samples: Finished samples.
        keys: For each sample, the index of its prompt and its index among the samples of the prompt.
        oracle: Model that generated the samples.
        built: Verifiers of each prompt.
        settings: Settings of the run.
        digests: Hash of the settings of each prompt (`GenerationSettings.prompt_digests`).

    Returns:
        One dictionary of JSON values per sample.
    """
    sampling = settings.sampling
    outcomes = sample_outcomes(
        samples,
        [built[place] for place, _ in keys],
        sampler=settings.sampler,
        tokenization=oracle.tokenization,
        eos=oracle.eos,
        cut=sampling.cuts,
        longest=sampling.max_completion_tokens,
        context=oracle.max_length,
        stop=sampling.stop,
    )
    generation_config = compare_generation_config(oracle.generation_config, sampling)
    records = []
    for row, ((place, number), sample, verdict) in enumerate(zip(keys, samples, outcomes, strict=True)):
        outcome = make_outcome_record(sample, verdict, weighted=settings.sampler.weighted)
        value = outcome.pop("value")
        if sample.token_log_probs is not None:
            outcome["log_probs"] = list(map(finite_or_none, sample.token_log_probs))
        if sampling.confidence:
            verifier = next(one.verifier for one in built[place] if one.kind.is_json)
            prompt = samples.tokens[row, : int(samples.prompt_lengths[row])].tolist()
            outcome |= confidence_record(oracle, prompt, sample.tokens, verifier, sampling.seed)
        records.append(
            {
                "id": settings.prompts[place].id,
                "sample": number,
                **settings.prompts[place].given(),
                "text": sample.text,
                "tokens": list(sample.tokens),
                **outcome,
                "value": value,
                "generation_config": generation_config,
                **make_cost_record(sample),
                "run": digests[place],
            }
        )
    return records


def compare_generation_config(config: Mapping[str, Any], sampling: Sampling) -> dict[str, dict[str, Any]]:
    """Compare the generation settings that the model recommends with the settings of the run.

    Args:
        config: Generation config of the model.
        sampling: Sampling settings of the run.

    Returns:
        Two dictionaries with fields of `config`. "used" has the fields that equal the settings of the run,
        and the end tokens, which are always used. "ignored" has all others.
    """
    active = {
        **sampling.truncation,
        "max_new_tokens": sampling.max_completion_tokens,
        "do_sample": sampling.temperature > 0,
    }
    active["top_k"] = active["top_k"] or 0
    used = {
        name: value
        for name, value in config.items()
        if name == "eos_token_id" or (name in active and active[name] == value)
    }
    return {"used": used, "ignored": {name: value for name, value in config.items() if name not in used}}
