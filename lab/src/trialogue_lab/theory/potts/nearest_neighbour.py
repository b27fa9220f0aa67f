"""The one Potts chain that is solved by hand: neighbours that differ cost J, so that bonds are independent.

V uniform patterns, windows of two tokens, E_max = J, open ends. Every bond is a wall with the same probability, which
gives the density of walls in equilibrium where equation 5 of the document on the Potts chain gives one sign.
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
    """V values per site, energy `coupling` = J for every two neighbours that differ, at `temperature` T.

    J may be infinite: then the chain repeats its first token for ever, at any temperature. Raises `InputError` for less
    than two values, a negative or undefined J, and a temperature that is not positive.
    """

    vocab_size: Annotated[int, Ge(2)]
    coupling: Annotated[float, Ge(0)]
    temperature: Positive

    @property
    def _odds(self) -> float:
        """(V - 1) e^{-J/T}: of a wall against none, at one bond."""
        return (self.vocab_size - 1) * math.exp(-self.coupling / self.temperature)

    @property
    def wall_probability(self) -> float:
        """Probability p = (V - 1) e^{-J/T} / (1 + (V - 1) e^{-J/T}) that a bond is a wall."""
        return self._odds / (1 + self._odds)

    @property
    def decay_rate(self) -> float:
        """log(1 + (V - 1) e^{-J/T}), by which log P(no wall) falls with every bond."""
        return math.log1p(self._odds)

    @validated
    def log_partition(self, length: Count) -> float:
        """log Z = log V + (L - 1) log(1 + (V - 1) e^{-J/T})."""
        return math.log(self.vocab_size) + (length - 1) * self.decay_rate

    @validated
    def expected_walls(self, length: Count) -> float:
        """(L - 1) p."""
        return (length - 1) * self.wall_probability

    @validated
    def no_wall_probability(self, length: Count) -> float:
        """(1 - p)^(L - 1)."""
        return math.exp(-(length - 1) * self.decay_rate)

    @validated
    def run_length_law(self, length: Count) -> Tensor:
        """P(the first token is repeated up to site r) for r = 1 .. L, (L,) float64: geometric, cut at L."""
        bonds = torch.arange(length, dtype=torch.float64)
        law = torch.exp(-self.decay_rate * bonds)
        law[:-1] *= self.wall_probability
        return law
