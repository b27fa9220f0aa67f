"""Evaluation of finished samples: whether they are accepted, and why not."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from trialogue.generation.verifiers.specs import BuiltVerifier
from trialogue.models.tokenization import Tokenization
from trialogue.samplers import Samples
from trialogue.samplers.prefix.output import reasons
from trialogue.verifiers.languages.stop_strings import StopStrings
from trialogue.verifiers.schemas.fields import open_field


class SampleOutcome(NamedTuple):
    """Whether a sample is accepted, and why it ended.

    Attributes:
        ended: How a complete sample ended: "eos" (end-of-sequence token), "stop" (stop string
            or stop token), "max_new_tokens" or "context" (maximum length of the model). None if it is incomplete.
        accepted: Whether the sample is complete, all verifiers accept it and no value is below its threshold.
        reason: Reason for the rejection, or None if the sample is accepted.
        value: Product of the values that graded verifiers (functions and probes) give the complete text. None
            if there are no graded verifiers or they were not evaluated.
    """

    ended: str | None
    accepted: bool
    reason: str | None
    value: float | None


def sample_outcomes(
    samples: Samples,
    built: Sequence[Sequence[BuiltVerifier]],
    *,
    sampler: Any,
    tokenization: Tokenization,
    eos: int | None,
    cut: bool,
    longest: int,
    context: int | None,
    stop: Sequence[str],
    stop_tokens: Sequence[int] = (),
) -> list[SampleOutcome]:
    """Determine whether each sample is accepted, and why it ended.

    Args:
        samples: Finished samples.
        built: Verifiers of each sample.
        sampler: Sampler that generated the samples.
        tokenization: Tokenization of the model.
        eos: End-of-sequence token, or None.
        cut: Whether some tokens got probability zero, by greedy decoding, top-k, top-p or min-p.
        longest: Maximum number of tokens per completion.
        context: Maximum length of a sequence in tokens, or None.
        stop: Stop strings, which end a text.
        stop_tokens: Tokens that end a text, in addition to `eos`.

    Returns:
        One outcome per sample.
    """
    completions, refusals, accepted = samples.completions(), samples.refusals(), samples.accepted.tolist()
    graded = [
        [(verifier.graded, verifier.threshold) for verifier in verifiers if verifier.graded is not None]
        for verifiers in built
    ]
    final = {verifier: verifier.final(samples) for verifiers in graded for verifier, _ in verifiers}
    strings = StopStrings(stop) if stop else None
    outcomes = []
    for row, completion in enumerate(completions):
        stopped, length = samples.stopped[row], int(samples.lengths[row])
        ended = None
        if not stopped:
            if completion and completion[-1] == eos:
                ended = "eos"
            elif (completion and completion[-1] in stop_tokens) or (
                strings and strings.find(tokenization.bytes(completion)) is not None
            ):
                ended = "stop"
            else:
                ended = "context" if length == context else "max_new_tokens"
        values = [(final[verifier][row], threshold) for verifier, threshold in graded[row]]
        below = [
            f"value {value:.4g} below the threshold {threshold:.4g}"
            for value, threshold in values
            if value is not None and threshold is not None and value < threshold
        ]
        error = samples.errors[row] if samples.errors else None
        is_json = any(one.kind.is_json for one in built[row])
        field = open_field(tokenization.text(completion, final=False)) if is_json else None
        reason = stopped
        if stopped == "failed":
            failure = reasons.explain_failure(
                sampler,
                cut=cut,
                length=length,
                drawn=len(completion),
                max_new_tokens=longest,
                context=context,
                refusal=refusals[row],
                remark=samples.remarks[row] if samples.remarks else None,
                field=field,
            )
            reason = f"failed: {error or failure}"
        elif ended in ("max_new_tokens", "context"):
            where = "" if field is None else f"the token limit ended the text in the field {field}"
            reason = reasons.explain_rejection(
                ended, longest, *filter(None, [*below[:1], error, refusals[row], where])
            )
        elif ended is not None:
            reason = reasons.explain_rejection(
                ended, longest, *below[:1], *filter(None, [error, refusals[row]])
            )
        is_accepted = accepted[row] and not below
        outcomes.append(
            SampleOutcome(
                ended, is_accepted, None if is_accepted else reason, _product([value for value, _ in values])
            )
        )
    return outcomes


def _product(values: Sequence[float | None]) -> float | None:
    """Return the product of `values`, or None unless all are available or one of them is 0."""
    known = [value for value in values if value is not None]
    return math.prod(known) if known and (len(known) == len(values) or 0 in known) else None
