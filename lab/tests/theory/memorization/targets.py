"""Random next-token distributions to memorize, and divergences from them."""

import torch
from torch import Tensor

from trialogue.randomness import generator


def random_log_probs(contexts: int, vocab: int, seed: int = 0) -> Tensor:
    logits = torch.randn(contexts, vocab, generator=generator(seed, "laws"), dtype=torch.float64)
    return (2 * logits).log_softmax(1)


def kl(first: Tensor, second: Tensor) -> float:
    return float((first.exp() * (first - second)).sum(1).mean())
