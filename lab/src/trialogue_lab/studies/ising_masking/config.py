"""Settings of the study: the models that are fitted, and how many training sets of which sizes."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.data import Ising
from trialogue.data.ising.model import Pairs
from trialogue_lab.ledger import Count, Different, Finite, Increasing, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """A clique of `sites` spins for each of `couplings`, and training sets of each of `sizes`.

    Every seed is one repetition of the figures, with `data_sets` training sets in every cell.
    """

    sites: Annotated[int, Interval(ge=2, le=6)] = 4
    """The control scores all masks of a sample, and the exact traces list all states."""
    couplings: Different[Finite] = (0.05, 0.3)
    field: Finite = 0.0
    sizes: Increasing[Count] = (300, 1000, 3000, 10_000)
    data_sets: Annotated[int, Ge(2)] = 10
    seeds: Seeds = tuple(range(12))

    @property
    def pairs(self) -> int:
        """Number of couplings."""
        return self.sites * (self.sites - 1) // 2

    def model(self, coupling: float, pairs: Pairs = "unordered") -> Ising:
        """The model that the data are drawn from, by either reading of its pairs."""
        return Ising.clique(self.sites, self.sites, coupling, self.field, pairs=pairs)


PRESETS = {
    "smoke": Config(sizes=(300, 1000), data_sets=2, seeds=(0, 1)),
    "pilot": Config(seeds=tuple(range(100, 108))),
    "default": Config(),
    "night": Config(seeds=tuple(range(100))),
    "paper": Config(sizes=(300, 1000, 3000, 10_000, 30_000, 100_000), seeds=tuple(range(100))),
}
