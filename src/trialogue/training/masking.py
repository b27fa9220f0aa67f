"""Masked-language-model training: which tokens are masked, by what they are replaced, and the loss."""

import torch
from torch import Tensor

from trialogue.randomness import generator


def uniform_masks(rows: int, sites: int, count: int, seed: int, *names: object) -> Tensor:
    """Masks (rows, sites) bool of `count` sites each, every such set equally likely; see `generator` for the names."""
    drawn = torch.rand(rows, sites, generator=generator(seed, *names), dtype=torch.float64)
    chosen = drawn.topk(count, 1).indices
    return torch.zeros(rows, sites, dtype=torch.bool).scatter_(1, chosen, True)
