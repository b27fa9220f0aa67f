"""A sample as the output line that describes it, and a run in one line."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from trialogue.generation.prompts import Prompt
from trialogue.inference import Samples
from trialogue.inference.verifiers.stop_strings import StopStrings
from trialogue.models.pretrained import PretrainedOracle

COSTS = ("queries", "distinct_queries", "forward_passes", "positions", "verifier_calls")


def records_of(
    samples: Samples,
    keys: Sequence[tuple[int, int]],
    prompts: Sequence[Prompt],
    oracle: PretrainedOracle,
    *,
    stop: Sequence[str],
    max_new_tokens: int,
    weighted: bool,
    run: str,
) -> list[dict[str, Any]]:
    """The output lines of `samples`; `keys` holds the place of each one's prompt, and its own place among that's.

    `ended` tells how a complete sample ended: "eos", "stop", "max_new_tokens" or "context". Where a sample is not
    `accepted`, `reason` says why. `log_prob` is null where a token was appended without asking the model. `log_weight`
    is null where the walk is not `weighted`: all accepted samples count alike; and where the sample is not accepted:
    it has weight zero.
    """
    texts, completions = samples.texts(), samples.completions()
    columns = {
        name: getattr(samples, name).tolist() for name in ("accepted", "log_prob", "log_weight", *COSTS)
    }
    strings = StopStrings(stop) if stop else None
    records = []
    for row, (place, sample) in enumerate(keys):
        stopped = samples.stopped[row]
        ended = None
        if not stopped:
            length = int(samples.lengths[row])
            if completions[row] and completions[row][-1] == oracle.eos:
                ended = "eos"
            elif strings and strings.find(oracle.tokenization.bytes(completions[row])) is not None:
                ended = "stop"
            else:
                ended = "context" if length == oracle.max_length else "max_new_tokens"
        accepted = columns["accepted"][row]
        records.append(
            {
                "id": prompts[place].id,
                "sample": sample,
                "prompt": prompts[place].text,
                "text": texts[row],
                "tokens": list(completions[row]),
                "accepted": accepted,
                "ended": ended,
                "reason": None if accepted else _reason(stopped, ended, max_new_tokens),
                "log_prob": _finite(columns["log_prob"][row]),
                "log_weight": _finite(columns["log_weight"][row]) if weighted and accepted else None,
                **{name: columns[name][row] for name in COSTS},
                "seconds": round(float(samples.seconds[row]), 6),
                "run": run,
            }
        )
    return records


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _reason(stopped: str, ended: str | None, max_new_tokens: int) -> str:
    """Why a sample is not accepted."""
    if stopped == "failed":
        return "failed: no token allowed"
    if stopped:
        return stopped
    if ended == "max_new_tokens":
        return f"cut at max_new_tokens={max_new_tokens}: rejected by the verifier"
    if ended == "context":
        return "cut at the end of the model's context: rejected by the verifier"
    return "rejected by the verifier"


def log_weights(records: Iterable[dict[str, Any]]) -> list[float]:
    """Log-weights of samples of a walk that has weights; -inf for those that are not accepted."""
    return [-math.inf if record["log_weight"] is None else record["log_weight"] for record in records]
