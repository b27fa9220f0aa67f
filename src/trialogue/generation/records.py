"""A sample as the output line that describes it, and a run in one line."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from trialogue.generation.settings import Settings
from trialogue.generation.verifier_specs import Built
from trialogue.inference import Samples
from trialogue.inference.verifiers.stop_strings import StopStrings
from trialogue.models.pretrained import PretrainedOracle

COSTS = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")


def records_of(
    samples: Samples,
    keys: Sequence[tuple[int, int]],
    oracle: PretrainedOracle,
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
    texts, completions = samples.texts(), samples.completions()
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
        reason = _reason(stopped, ended, sampling.longest, *below)
        if stopped == "failed":
            reason = f"failed: {_failure(settings, length, len(completions[row]), oracle.max_length)}"
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


def _failure(settings: Settings, length: int, drawn: int, context: int | None) -> str:
    """Why a sample of `length` tokens, `drawn` of them its own, had no way on."""
    if settings.walk.rows_per_sample > 1:
        return f"all {settings.walk.rows_per_sample} rows were rejected"
    sampling = settings.sampling
    reason = "no token allowed"
    if sampling.cuts and not settings.walk.masks_first:
        reason += " of those that temperature, top_k, top_p and min_p leave"
    # The token that comes last must complete the text: with more room there might have been another.
    if drawn + 1 == sampling.longest:
        reason += f", with max_new_tokens={sampling.longest} leaving room for one more only"
    elif context is not None and length + 1 == context:
        reason += ", with the model's context leaving room for one more only"
    return reason


def _reason(stopped: str, ended: str | None, max_new_tokens: int, *below: str) -> str:
    """Why a sample is not accepted; `below` names the thresholds that it fails."""
    if stopped:
        return stopped
    rejected = ": ".join(("rejected by the verifier", *below[:1]))
    if ended == "max_new_tokens":
        return f"cut at max_new_tokens={max_new_tokens}: {rejected}"
    if ended == "context":
        return f"cut at the end of the model's context: {rejected}"
    return rejected


def log_weights(records: Iterable[dict[str, Any]]) -> list[float]:
    """Log-weights of samples of a walk that has weights; -inf for those that are not accepted."""
    return [-math.inf if record["log_weight"] is None else record["log_weight"] for record in records]
