"""Errors and warnings about samples that are not accepted."""

import warnings
from collections import Counter
from typing import Any, Literal

from torch import Tensor

from trialogue.generation.custom_generate.call import GenerateCall
from trialogue.oracles import Autoregressive
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.output import reasons
from trialogue.samplers.prefix.output.samples import Samples

Policy = Literal["raise", "warn", "keep"]


class RejectedSamplesError(RuntimeError):
    """Error raised if samples are not accepted. The message has their number and the reasons.

    Attributes:
        sequences: Token ids that `generate` would have returned, shape (n, length).
        samples: All samples of the call, accepted or not.
    """

    def __init__(self, line: str, sequences: Tensor, samples: Samples) -> None:
        super().__init__(line)
        self.sequences, self.samples = sequences, samples


def report_rejected_samples(
    policy: Policy,
    samples: Samples,
    sequences: Tensor,
    *,
    sampler: Sampler[Any],
    call: GenerateCall,
    oracle: Autoregressive,
) -> None:
    """Raise an error or issue a warning if some samples are not accepted.

    A sample is not accepted if the verifier rejects it, or if it is incomplete.

    Args:
        policy: "raise" to raise an error, "warn" to issue a warning, "keep" to do nothing.
        samples: All samples of the call.
        sequences: Token ids that `generate` would return, shape (n, length).
        sampler: Sampler that generated the samples.
        call: Arguments of the call.
        oracle: Oracle of the model.

    Raises:
        RejectedSamplesError: If a sample is not accepted and `policy` is "raise".
    """
    rejected = (~samples.accepted).nonzero()[:, 0].tolist()
    if policy == "keep" or not rejected:
        return
    counts, refusals = Counter[str](), samples.refusals()
    for row in rejected:
        length, drawn = int(samples.lengths[row]), int(samples.lengths[row] - samples.prompt_lengths[row])
        if samples.stopped[row] == "failed":
            counts[
                reasons.explain_failure(
                    sampler,
                    cut=call.removes_tokens,
                    length=length,
                    drawn=drawn,
                    max_new_tokens=call.max_new_tokens,
                    context=oracle.max_length,
                    refusal=refusals[row],
                    remark=samples.remarks[row] if samples.remarks else None,
                )
            ] += 1
        elif samples.stopped[row]:
            counts[f"stopped by {samples.stopped[row]}"] += 1
        else:
            ended = _end_reason(samples, row, call.max_new_tokens, oracle)
            counts[reasons.explain_rejection(ended, call.max_new_tokens, *filter(None, [refusals[row]]))] += 1
    summary = "; ".join(
        f"{reason} ({count})" if len(counts) > 1 else reason for reason, count in counts.most_common()
    )
    line = f"{len(rejected)} of {len(samples.accepted)} samples are not accepted: {summary}"
    if policy == "warn":
        warnings.warn(line, stacklevel=2)
        return
    raise RejectedSamplesError(
        f"{line}. This error has attributes sequences and samples; use rejected='warn' or 'keep' to return them.",
        sequences,
        samples,
    )


def _end_reason(samples: Samples, row: int, max_new_tokens: int, oracle: Autoregressive) -> str:
    """Return why the complete sample with index `row` ended."""
    length, start = int(samples.lengths[row]), int(samples.prompt_lengths[row])
    if length > start and int(samples.tokens[row, length - 1]) == oracle.eos:
        return "eos"
    if length - start == max_new_tokens:
        return "max_new_tokens"
    return "context" if length == oracle.max_length else "stop"
