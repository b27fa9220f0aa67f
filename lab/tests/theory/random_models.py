"""Random enumerable exponential families and distributions of blocks that several tests share."""

from typing import NamedTuple

import torch
from torch import Tensor

from trialogue.data.ising.model import Ising
from trialogue.randomness import generator

SIX_BLOCKS = ((0,), (1, 2), (0, 2), (1, 3), (2, 3), (0, 1, 3))


def random_ising(sites: int, *names: object, scale: float = 0.7) -> Ising:
    draws = generator(0, "ising", sites, *names)
    couplings = scale * torch.randn(sites, sites, generator=draws, dtype=torch.float64).triu(1)
    field = scale * torch.randn(sites, generator=draws, dtype=torch.float64)
    return Ising(couplings + couplings.T, field)


def random_simplex(*shape: int, names: object = 0) -> Tensor:
    """Sample uniform distributions on the last dimension."""
    draws = torch.rand(*shape, generator=generator(0, "simplex", names), dtype=torch.float64)
    return (-draws.log()) / (-draws.log()).sum(-1, keepdim=True)


def reversibility_gap(transitions: Tensor, distribution: Tensor) -> float:
    """Return the largest violation of detailed balance of a transition matrix with a distribution."""
    flow = distribution[:, None] * transitions
    return float((flow - flow.T).abs().max())


class Family(NamedTuple):
    """An exponential family with a table of features for all states, which is not an Ising model."""

    sites: int
    vocab_size: int
    table: Tensor  # (states, parameters)
    parameters: Tensor

    def states(self) -> Tensor:
        return torch.cartesian_prod(*[torch.arange(self.vocab_size)] * self.sites).view(-1, self.sites)

    def probabilities(self) -> Tensor:
        return (self.table @ self.parameters).softmax(0)

    def features(self, tokens: Tensor) -> Tensor:
        places = self.vocab_size ** torch.arange(self.sites - 1, -1, -1)
        return self.table[(tokens * places).sum(1)]


def random_family(sites: int, vocab_size: int, parameters: int, *names: object) -> Family:
    draws = generator(0, "family", sites, vocab_size, parameters, *names)
    table = torch.randn(vocab_size**sites, parameters, generator=draws, dtype=torch.float64)
    return Family(sites, vocab_size, table, torch.randn(parameters, generator=draws, dtype=torch.float64))
