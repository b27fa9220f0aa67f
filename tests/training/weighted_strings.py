"""Distribution on strings of up to three tokens with probabilities n / 16, which one batch represents exactly."""

import torch
from torch import Tensor

from trialogue.oracles import pad_sequences

WEIGHTS = {(): 1, (0,): 2, (1,): 1, (0, 1): 4, (1, 1): 2, (0, 0, 1): 1, (0, 1, 0): 3, (1, 0, 0): 2}
EOS = 2


def batch() -> tuple[Tensor, Tensor]:
    return pad_sequences([string for string, weight in WEIGHTS.items() for _ in range(weight)], 3)


def conditionals() -> dict[tuple[int, ...], Tensor]:
    """Return the next-token distribution (0, 1 or EOS) after each prefix."""
    counts: dict[tuple[int, ...], Tensor] = {}
    for string, weight in WEIGHTS.items():
        for length in range(len(string) + 1):
            token = string[length] if length < len(string) else EOS
            counts.setdefault(string[:length], torch.zeros(3))[token] += weight
    return {prefix: count / count.sum() for prefix, count in counts.items()}
