"""Return values of `generate`: padded sequences, scores and logits."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.generation import GenerateDecoderOnlyOutput

from trialogue.samplers.prefix.output.samples import Samples


@dataclass
class SamplerOutput(GenerateDecoderOnlyOutput):  # type: ignore[misc] # transformers has no types
    """Output of `generate` with `return_dict_in_generate=True`.

    Attributes:
        sequences: Token ids (n, length) of prompts and completions, padded on both sides.
        scores: For each step, the log-probabilities (n, vocab) from which the token was sampled, after
            processors, mask and truncation. In greedy decoding, the log-probabilities before the most likely
            token is chosen. All end-of-sequence tokens are merged into one.
        logits: For each step, the unprocessed logits (n, vocab) of the model.
        samples: The `num_return_sequences` samples per prompt, with their weights, log-probabilities and
            acceptance. `log_prob` is under the unmodified model, and `log_weight` refers to the model after
            processors and temperature.
    """

    samples: Samples | None = None


def append_completions(input_ids: Tensor, samples: Samples, pad: int) -> Tensor:
    """Append completions to the prompts of a batch.

    Args:
        input_ids: Token ids of the prompts, padded on the left, shape (n, width).
        samples: The completions of these prompts.
        pad: Token id for padding on the right.

    Returns:
        Token ids of prompts and completions, shape (n, width + length of the longest completion).
    """
    completions = samples.completions()
    longest = max(map(len, completions))
    tails = [[*completion, *[pad] * (longest - len(completion))] for completion in completions]
    return torch.cat((input_ids, torch.tensor(tails, dtype=input_ids.dtype, device=input_ids.device)), 1)


def compute_logits(model: Any, sequences: Tensor, starts: list[int], width: int) -> tuple[Tensor, ...]:
    """Compute the model's logits for every token after the prompts.

    Each row needs one forward pass. The result equals the logits of token-by-token generation up to rounding
    error.

    Args:
        model: Causal language model of transformers.
        sequences: Token ids (n, length), padded on both sides.
        starts: Start index of each prompt after its left padding.
        width: Length of the padded prompts.

    Returns:
        For each of the `length - width` steps, the logits (n, vocab) float32. Positions after the end of a
        completion are evaluated on padding tokens, as in `generate`.
    """
    steps = sequences.shape[1] - width
    rows: list[Tensor] = []
    if not steps:
        return ()
    for sequence, start in zip(sequences, starts, strict=True):
        tokens = sequence[None, start:-1].to(model.device)
        rows.append(model(input_ids=tokens, use_cache=False).logits[0, -steps:].float())
    return tuple(torch.stack(rows, 1).to(sequences.device).unbind())
