"""A sample as the output line that describes it, and a run in one line."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trialogue.generation.settings import Sampling, Settings
from trialogue.generation.verdicts import verdicts
from trialogue.generation.verifier_specs import Built
from trialogue.models.opening import TextModel
from trialogue.samplers import Samples

COSTS = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")


def records_of(
    samples: Samples,
    keys: Sequence[tuple[int, int]],
    oracle: TextModel,
    built: Sequence[Sequence[Built]],
    *,
    settings: Settings,
    runs: Sequence[str],
) -> list[dict[str, Any]]:
    """The output lines of `samples`; `keys` holds the place of each one's prompt, and its own place among that's.
    `built` are the verifiers of each prompt, `runs` what its records call the run.

    What is said of each is its `SampleOutcome`. `log_prob` is null where a token was appended without asking the model.
    `log_weight` is null where the sampler has no weights: all accepted samples count alike; and where the sample is not
    accepted: it has weight zero.
    """
    texts, completions = samples.texts(), samples.completions()
    columns = {name: getattr(samples, name).tolist() for name in ("log_prob", "log_weight", *COSTS)}
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
    log_probs = _token_log_probs(samples)
    followed = followed_config(oracle.generation_config, sampling)
    records = []
    for row, (place, sample) in enumerate(keys):
        ended, accepted, reason, value = said[row]
        records.append(
            {
                "id": settings.prompts[place].id,
                "sample": sample,
                **settings.prompts[place].given(),
                "text": texts[row],
                "tokens": list(completions[row]),
                "accepted": accepted,
                "ended": ended,
                "reason": reason,
                "log_prob": _finite(columns["log_prob"][row]),
                "log_weight": _finite(columns["log_weight"][row])
                if settings.sampler.weighted and accepted
                else None,
                **({"log_probs": log_probs[row]} if log_probs is not None else {}),
                "value": value,
                "generation_config": followed,
                **{name: columns[name][row] for name in COSTS},
                "seconds": round(float(samples.seconds[row]), 6),
                "run": runs[place],
            }
        )
    return records


def followed_config(config: Mapping[str, Any], sampling: Sampling) -> dict[str, dict[str, Any]]:
    """Which settings of the model's own generation config are "used", since they hold in the run, and which "ignored".

    The tokens that end a text are the model's; whatever else decides samples is what the command says, which may agree.
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


def _token_log_probs(samples: Samples) -> list[list[float | None]] | None:
    """Of each sample the log-probabilities of its tokens, where they were asked for."""
    if samples.token_log_probs is None:
        return None
    return [[_finite(one) for one in sample.token_log_probs or ()] for sample in samples]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def log_weights(records: Iterable[dict[str, Any]]) -> list[float]:
    """Log-weights of samples of a sampler that has weights; -inf for those that are not accepted."""
    return [-math.inf if record["log_weight"] is None else record["log_weight"] for record in records]
