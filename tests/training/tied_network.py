"""User-defined network with tied weights, a buffer, a tuple in its config and weights of two dtypes."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trialogue.models import register_network
from trialogue.randomness import generator


@dataclass(frozen=True)
class TiedConfig:
    widths: tuple[int, ...] = (3, 4)
    half: bool = False


@register_network("tied", TiedConfig)
class Tied(nn.Module):
    """Network whose embedding matrix is also the output head."""

    def __init__(self, config: TiedConfig, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(torch.randn(config.widths, generator=generator(seed, "tied")))
        self.head = nn.Linear(config.widths[1], config.widths[0], bias=False)
        self.head.weight = self.embedding
        self.shift = nn.Parameter(torch.zeros(3, dtype=torch.bfloat16 if config.half else torch.float32))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("ones", torch.ones(3), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        self.calls += self.training
        logits: Tensor = self.head(self.embedding[tokens]) + self.shift + self.ones
        return logits


def tied_loss(model: Tied, tokens: Tensor) -> Tensor:
    """Compute the cross-entropy of each token given the previous token."""
    return nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
