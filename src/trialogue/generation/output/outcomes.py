"""What is said of finished samples: how each ended, whether it is accepted, and why not."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from trialogue.generation.verifiers.specs import Built
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import Samples
from trialogue.samplers.prefix.output import reasons
from trialogue.verifiers.languages.stop_strings import StopStrings


class SampleOutcome(NamedTuple):
    """What is said of a sample.

    `ended` tells how a complete one ended: "eos", "stop", "max_new_tokens" or "context". Where it is not `accepted`,
    `reason` says why. `value` is the product of what graded verifiers (functions, probes) gave the complete text; None
    where there is none, or where it was not asked for. A sample is accepted only where none is below its threshold.
    """

    ended: str | None
    accepted: bool
    reason: str | None
    value: float | None


def verdicts(
    samples: Samples,
    built: Sequence[Sequence[Built]],
    *,
    sampler: Any,
    tokenization: Tokenization,
    eos: int | None,
    cut: bool,
    longest: int,
    context: int | None,
    stop: Sequence[str],
) -> list[SampleOutcome]:
    """The verdicts on `samples` of `sampler`, each judged by the verifiers `built` for it.

    `cut` says whether temperature 0, top-k or the like leave tokens out, `longest` is the longest completion, `context`
    the longest sequence, `stop` are the strings that complete a text.
    """
    completions, refusals, accepted = samples.completions(), samples.refusals(), samples.accepted.tolist()
    graded = [[(one.graded, one.threshold) for one in own if one.graded is not None] for own in built]
    final = {one: one.final(samples) for own in graded for one, _ in own}
    strings = StopStrings(stop) if stop else None
    said = []
    for row, completion in enumerate(completions):
        stopped, length = samples.stopped[row], int(samples.lengths[row])
        ended = None
        if not stopped:
            if completion and completion[-1] == eos:
                ended = "eos"
            elif strings and strings.find(tokenization.bytes(completion)) is not None:
                ended = "stop"
            else:
                ended = "context" if length == context else "max_new_tokens"
        values = [(final[one][row], threshold) for one, threshold in graded[row]]
        below = [
            f"value {value:.4g} below the threshold {threshold:.4g}"
            for value, threshold in values
            if value is not None and threshold is not None and value < threshold
        ]
        error = samples.errors[row] if samples.errors else None
        reason = stopped
        if stopped == "failed":
            failure = reasons.failure(
                sampler,
                cut=cut,
                length=length,
                drawn=len(completion),
                max_new_tokens=longest,
                context=context,
                refusal=refusals[row],
            )
            reason = f"failed: {error or failure}"
        elif ended is not None:
            reason = reasons.rejection(ended, longest, *below[:1], *filter(None, [error, refusals[row]]))
        fine = accepted[row] and not below
        said.append(
            SampleOutcome(ended, fine, None if fine else reason, _product([value for value, _ in values]))
        )
    return said


def _product(values: Sequence[float | None]) -> float | None:
    """The product of values, which are asked for one after the other as long as it is positive."""
    known = [value for value in values if value is not None]
    return math.prod(known) if known and (len(known) == len(values) or 0 in known) else None
