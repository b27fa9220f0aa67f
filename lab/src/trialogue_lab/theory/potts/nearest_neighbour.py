"""Closed forms for the nearest-neighbor Potts chain, whose bonds are independent.

The chain has V uniform patterns, windows of two tokens, E_max = J and open ends. Every bond is a wall with
the same probability, which gives the density of walls in equilibrium.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from annotated_types import Ge
from torch import Tensor

from trialogue.validation import Count, Positive, validated


@validated
@dataclass(frozen=True)
class NearestNeighbourPotts:
    """Potts chain with V values per site and energy J for each pair of unequal neighbors.

    If J is infinite, the chain repeats its first token forever.

    Args:
        vocab_size: Number of values V.
        coupling: Energy J of a wall, possibly infinite.
        temperature: Temperature T.
    """

    vocab_size: Annotated[int, Ge(2)]
    coupling: Annotated[float, Ge(0)]
    temperature: Positive

    @property
    def _odds(self) -> float:
        """(V - 1) e^{-J/T}, the odds of a wall at one bond."""
        return (self.vocab_size - 1) * math.exp(-self.coupling / self.temperature)

    @property
    def wall_probability(self) -> float:
        """Probability p = (V - 1) e^{-J/T} / (1 + (V - 1) e^{-J/T}) of a wall at one bond."""
        return self._odds / (1 + self._odds)

    @property
    def decay_rate(self) -> float:
        """log(1 + (V - 1) e^{-J/T}), the decrease of log P(no wall) per bond."""
        return math.log1p(self._odds)

    @validated
    def log_partition(self, length: Count) -> float:
        """Return log Z = log V + (L - 1) log(1 + (V - 1) e^{-J/T})."""
        return math.log(self.vocab_size) + (length - 1) * self.decay_rate

    @validated
    def expected_walls(self, length: Count) -> float:
        """Return the expected number of walls, (L - 1) p."""
        return (length - 1) * self.wall_probability

    @validated
    def no_wall_probability(self, length: Count) -> float:
        """Return the probability of no wall, (1 - p)^(L - 1)."""
        return math.exp(-(length - 1) * self.decay_rate)

    @validated
    def run_length_distribution(self, length: Count) -> Tensor:
        """Return P(the first token is repeated up to site r) for r = 1 .. L: geometric, truncated at L."""
        bonds = torch.arange(length, dtype=torch.float64)
        distribution = torch.exp(-self.decay_rate * bonds)
        distribution[:-1] *= self.wall_probability
        return distribution
