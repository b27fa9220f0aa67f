"""Settings of the study: the Ising models, the samplers and the numbers of chains."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.data import Ising
from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Different, Finite, Seeds, Settings

PARALLEL = "independent parallel"


def block_label(size: int) -> str:
    """Return the name of the sampler with block size k, for example "k = 2".

    The sampler resamples k random spins per step.

    Args:
        size: Number k of spins.
    """
    return f"k = {size}"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of a run.

    The sampled Ising models contain a clique, a set of spins that are all coupled with each other. The k-Gibbs sampler
    resamples k random spins per step.

    Args:
        sites: Number of spins N.
        clique: Number of spins in the clique.
        field: External field h of every spin.
        couplings: Couplings J between the spins of the clique.
        block_sizes: Numbers k of spins that k-Gibbs resamples per step.
        budget: Largest number of steps of a chain.
        chains: Number of chains for each sampler, coupling and seed.
        seeds: One seed per repetition of the figure.
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
        """Raise `InputError` if the numbers of spins contradict each other.

        Raises:
            InputError: If the clique (coupled spins) or a block (resampled spins) has more spins than the model.
        """
        if self.clique > self.sites:
            raise InputError("clique", self.clique, f"use 2 to sites={self.sites}")
        if max(self.block_sizes) > self.sites:
            raise InputError("block_sizes", self.block_sizes, f"use numbers from 1 to sites={self.sites}")

    def model(self, coupling: float) -> Ising:
        """Return the Ising model that is sampled. Its energy counts each pair of coupled spins once.

        Args:
            coupling: Coupling J between the spins of the clique, which are all coupled with each other.
        """
        return Ising.clique(self.sites, self.clique, coupling, self.field)


PRESETS = {
    "smoke": Config(block_sizes=(1, 4, 6, 8, 10), budget=60, chains=4, seeds=(0, 1)),
    "pilot": Config(seeds=tuple(range(100, 110))),
    "default": Config(),
    "night": Config(seeds=tuple(range(60))),
    "paper": Config(seeds=tuple(range(100))),
}
