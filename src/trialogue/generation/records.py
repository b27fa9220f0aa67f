"""A sample as the output line that describes it, and a run in one line."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from trialogue.generation.settings import Settings
from trialogue.generation.verifier_specs import Built
from trialogue.inference import Samples
from trialogue.inference.verifiers.stop_strings import StopStrings
from trialogue.inference.walks import reasons
from trialogue.models.opening import TextModel

COSTS = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")


def records_of(
    samples: Samples,
    keys: Sequence[tuple[int, int]],
    oracle: TextModel,
    built: Sequence[Built],
    *,
    settings: Settings,
    run: str,
) -> list[dict[str, Any]]:
    """The output lines of `samples`; `keys` holds the place of each one's prompt, and its own place among that's.

    `ended` tells how a complete sample ended: "eos", "stop", "max_new_tokens" or "context". Where a sample is not
    `accepted`, `reason` says why. `log_prob` is null where a token was appended without asking the model. `log_weight`
    is null where the walk has no weights: all accepted samples count alike; and where the sample is not accepted:
    it has weight zero. `value` is the product of what graded verifiers (functions, probes) gave the complete text; null
    where there is none, or where it was not asked for. A sample is `accepted` only where none of them is below its
    threshold.
    """
    texts, completions, refusals = samples.texts(), samples.completions(), samples.refusals()
    columns = {
        name: getattr(samples, name).tolist() for name in ("accepted", "log_prob", "log_weight", *COSTS)
    }
    sampling = settings.sampling
    graded = [(one.graded.final(samples), one.threshold) for one in built if one.graded is not None]
    strings = StopStrings(sampling.stop) if sampling.stop else None
    records = []
    for row, (place, sample) in enumerate(keys):
        stopped = samples.stopped[row]
        ended, length = None, int(samples.lengths[row])
        if not stopped:
            if completions[row] and completions[row][-1] == oracle.eos:
                ended = "eos"
            elif strings and strings.find(oracle.tokenization.bytes(completions[row])) is not None:
                ended = "stop"
            else:
                ended = "context" if length == oracle.max_length else "max_new_tokens"
        values = [(of_samples[row], threshold) for of_samples, threshold in graded]
        below = [
            f"value {value:.4g} below the threshold {threshold:.4g}"
            for value, threshold in values
            if value is not None and threshold is not None and value < threshold
        ]
        accepted = columns["accepted"][row] and not below
        reason = stopped
        if stopped == "failed":
            reason = "failed: " + reasons.failure(
                settings.walk,
                cut=sampling.cuts,
                length=length,
                drawn=len(completions[row]),
                max_new_tokens=sampling.longest,
                context=oracle.max_length,
                refusal=refusals[row],
            )
        elif ended is not None:
            reason = reasons.rejection(ended, sampling.longest, *below[:1], *filter(None, [refusals[row]]))
        records.append(
            {
                "id": settings.prompts[place].id,
                "sample": sample,
                "prompt": settings.prompts[place].text,
                "text": texts[row],
                "tokens": list(completions[row]),
                "accepted": accepted,
                "ended": ended,
                "reason": None if accepted else reason,
                "log_prob": _finite(columns["log_prob"][row]),
                "log_weight": _finite(columns["log_weight"][row])
                if settings.walk.weighted and accepted
                else None,
                "value": _product([value for value, _ in values]),
                **{name: columns[name][row] for name in COSTS},
                "seconds": round(float(samples.seconds[row]), 6),
                "run": run,
            }
        )
    return records


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _product(values: Sequence[float | None]) -> float | None:
    """The product of values, which are asked for one after the other as long as it is positive."""
    known = [value for value in values if value is not None]
    return math.prod(known) if known and (len(known) == len(values) or 0 in known) else None


def log_weights(records: Iterable[dict[str, Any]]) -> list[float]:
    """Log-weights of samples of a walk that has weights; -inf for those that are not accepted."""
    return [-math.inf if record["log_weight"] is None else record["log_weight"] for record in records]
