"""What a call of `generate` returns: padded sequences, and what else it asked for."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.generation import GenerateDecoderOnlyOutput

from trialogue.samplers.prefix.output.samples import Samples


@dataclass
class SamplerOutput(GenerateDecoderOnlyOutput):  # type: ignore[misc] # transformers has no types
    """What `generate` returns where it is asked for a dictionary: `sequences`, and the `samples` behind them.

    `scores` are, of every step, the logarithms (n, vocab) of the distribution that its tokens were drawn from, after
    processors, mask and cut; of a greedy step of the distribution before only the likeliest token is left, without
    those that a verifier was not asked about, as none of them could be it. Several ends of sequence are one there.
    `logits` are the model's own.
    """

    samples: Samples | None = None


def padded(input_ids: Tensor, samples: Samples, pad: int) -> Tensor:
    """The inputs as they were and the completions behind them, padded on the right with `pad`."""
    completions = samples.completions()
    longest = max(map(len, completions))
    tails = [[*completion, *[pad] * (longest - len(completion))] for completion in completions]
    return torch.cat((input_ids, torch.tensor(tails, dtype=input_ids.dtype, device=input_ids.device)), 1)


def own_logits(model: Any, sequences: Tensor, starts: list[int], width: int) -> tuple[Tensor, ...]:
    """The model's logits (n, vocab) float32 for every token behind the first `width` of `sequences` (n, length).

    `starts` are where the prompts begin, behind their padding. One pass over each row: equal to what was found token by
    token but for rounding. What follows a completion is padding, as it is for `generate`.
    """
    steps = sequences.shape[1] - width
    rows: list[Tensor] = []
    if not steps:
        return ()
    for sequence, start in zip(sequences, starts, strict=True):
        tokens = sequence[None, start:-1].to(model.device)
        rows.append(model(input_ids=tokens, use_cache=False).logits[0, -steps:].float())
    return tuple(torch.stack(rows, 1).to(sequences.device).unbind())
