"""Closed forms for the Potts chain in which only neighboring tokens interact.

Neighbors with equal values have energy 0 and unequal ones have energy J. Sequences of L values have probabilities
proportional to exp(-total energy / T). A pair of unequal neighbors is called a domain wall. All pairs of neighbors are
independent, and each is a wall with the same probability.
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
    """Open Potts chain with V values per site and energy J for each pair of unequal neighbors.

    A pair of unequal neighbors is called a wall. If J is infinite, the chain repeats its first value forever.

    Args:
        vocab_size: Number of values V.
        coupling: Energy J of a wall, possibly infinite.
        temperature: Temperature T, in the unit of J.
    """

    vocab_size: Annotated[int, Ge(2)]
    coupling: Annotated[float, Ge(0)]
    temperature: Positive

    @property
    def _odds(self) -> float:
        """(V - 1) e^{-J/T}, the odds that two given neighbors are unequal."""
        return (self.vocab_size - 1) * math.exp(-self.coupling / self.temperature)

    @property
    def wall_probability(self) -> float:
        """Probability p = (V - 1) e^{-J/T} / (1 + (V - 1) e^{-J/T}) that two given neighbors are unequal (a wall)."""
        return self._odds / (1 + self._odds)

    @property
    def decay_rate(self) -> float:
        """Rate in nats at which -log P(all values are equal) grows with the number of pairs of neighbors.

        It is log(1 + (V - 1) e^{-J/T}).
        """
        return math.log1p(self._odds)

    @validated
    def log_partition(self, length: Count) -> float:
        """Return the logarithm of the partition function for a chain of L = `length` values.

        It is log Z = log V + (L - 1) log(1 + (V - 1) e^{-J/T}).
        """
        return math.log(self.vocab_size) + (length - 1) * self.decay_rate

    @validated
    def expected_walls(self, length: Count) -> float:
        """Return the expected number (L - 1) p of unequal neighbors in a chain of L = `length` values."""
        return (length - 1) * self.wall_probability

    @validated
    def no_wall_probability(self, length: Count) -> float:
        """Return the probability (1 - p)^(L - 1) that all L = `length` values of a chain are equal."""
        return math.exp(-(length - 1) * self.decay_rate)

    @validated
    def run_length_distribution(self, length: Count) -> Tensor:
        """Return the distribution of the number of equal values at the start of the chain.

        Args:
            length: Number L of values in the chain.

        Returns:
            Probabilities (L,) float64. Entry r - 1 is the probability that exactly the first r values are equal.
        """
        bonds = torch.arange(length, dtype=torch.float64)
        distribution = torch.exp(-self.decay_rate * bonds)
        distribution[:-1] *= self.wall_probability
        return distribution
