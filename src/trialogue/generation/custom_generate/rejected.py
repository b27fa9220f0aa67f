"""What becomes of samples that were not accepted: they are never returned without a word, unless that was asked for."""

import warnings
from collections import Counter
from typing import Any, Literal

from torch import Tensor

from trialogue.generation.custom_generate.call import Call
from trialogue.oracles import Autoregressive
from trialogue.samplers.prefix.contract.sampler import Sampler
from trialogue.samplers.prefix.output import reasons
from trialogue.samplers.prefix.output.samples import Samples

Policy = Literal["raise", "warn", "keep"]


class RejectedSamplesError(RuntimeError):
    """Some of the samples that were drawn are not accepted: one line that says how many, and why.

    Nothing is lost: `sequences` (n, length) is what `generate` would have returned, `samples` what is behind it, where
    `accepted` tells which ones are.
    """

    def __init__(self, line: str, sequences: Tensor, samples: Samples) -> None:
        super().__init__(line)
        self.sequences, self.samples = sequences, samples


def report(
    policy: Policy,
    samples: Samples,
    sequences: Tensor,
    *,
    sampler: Sampler[Any],
    call: Call,
    oracle: Autoregressive,
) -> None:
    """Raise, warn or do nothing, as `policy` says, if some of `samples` are not accepted."""
    rejected = (~samples.accepted).nonzero()[:, 0].tolist()
    if policy == "keep" or not rejected:
        return
    why, refusals = Counter[str](), samples.refusals()
    for row in rejected:
        length, drawn = int(samples.lengths[row]), int(samples.lengths[row] - samples.prompt_lengths[row])
        if samples.stopped[row] == "failed":
            why[
                reasons.failure(
                    sampler,
                    cut=call.cuts,
                    length=length,
                    drawn=drawn,
                    max_new_tokens=call.max_new_tokens,
                    context=oracle.max_length,
                    refusal=refusals[row],
                )
            ] += 1
        elif samples.stopped[row]:
            why[f"stopped by {samples.stopped[row]}"] += 1
        else:
            ended = _ended(samples, row, call.max_new_tokens, oracle)
            why[reasons.rejection(ended, call.max_new_tokens, *filter(None, [refusals[row]]))] += 1
    told = "; ".join(f"{reason} ({count})" if len(why) > 1 else reason for reason, count in why.most_common())
    line = f"{len(rejected)} of {len(samples.accepted)} samples are not accepted: {told}"
    if policy == "warn":
        warnings.warn(line, stacklevel=2)
        return
    raise RejectedSamplesError(
        f"{line}; the error's sequences and samples hold all that was drawn, rejected='warn' or 'keep' returns it",
        sequences,
        samples,
    )


def _ended(samples: Samples, row: int, max_new_tokens: int, oracle: Autoregressive) -> str:
    """How the complete sample `row` ended."""
    length, start = int(samples.lengths[row]), int(samples.prompt_lengths[row])
    if length > start and int(samples.tokens[row, length - 1]) == oracle.eos:
        return "eos"
    if length - start == max_new_tokens:
        return "max_new_tokens"
    return "context" if length == oracle.max_length else "stop"
