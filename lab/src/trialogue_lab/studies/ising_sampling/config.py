"""Settings of the study: the models and chains of Figure 4.3, and how often they are run."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Different, Finite, Seeds, Settings

PARALLEL = "independent parallel"


def block_label(size: int) -> str:
    """How rows call k-Gibbs."""
    return f"k = {size}"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """`sites` spins in a field, the first `clique` of them coupled with each of `couplings`.

    Every seed is one repetition of the figure, with `chains` chains in every cell, stopped after `budget` steps.
    """

    sites: Annotated[int, Ge(2)] = 10
    clique: Annotated[int, Ge(2)] = 4
    field: Finite = 5.0
    couplings: Different[Finite] = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    block_sizes: Different[Count] = tuple(range(1, 11))
    budget: Count = 1000
    chains: Annotated[int, Ge(2)] = 10
    seeds: Seeds = tuple(range(30))

    def check(self) -> None:
        """Raise `InputError` for a clique or a block that is larger than the model."""
        if self.clique > self.sites:
            raise InputError("clique", self.clique, f"use 2 to sites={self.sites}")
        if max(self.block_sizes) > self.sites:
            raise InputError("block_sizes", self.block_sizes, f"give numbers from 1 to sites={self.sites}")

    def model(self, coupling: float) -> Ising:
        """The model that is sampled from, its pairs read as unordered; read as ordered, it has half this coupling."""
        return Ising.clique(self.sites, self.clique, coupling, self.field)


PRESETS = {
    "smoke": Config(block_sizes=(1, 4, 6, 8, 10), budget=60, chains=4, seeds=(0, 1)),
    "pilot": Config(seeds=tuple(range(100, 110))),
    "default": Config(),
    "night": Config(seeds=tuple(range(60))),
    "paper": Config(seeds=tuple(range(100))),
}
