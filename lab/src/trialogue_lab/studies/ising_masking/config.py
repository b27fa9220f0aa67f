"""Settings of the study: the Ising models, and the numbers and sizes of training sets."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue.data import Ising
from trialogue.data.ising.model import Pairs
from trialogue_lab.ledger import Count, Different, Finite, Increasing, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of a run.

    Ising models are fitted to samples by predicting masked spins from the others.

    Args:
        sites: Number of spins, which are all coupled with each other. All states and masks are enumerated.
        couplings: Couplings J between the spins of the true models.
        field: External field of every spin.
        sizes: Numbers of samples in the training sets.
        data_sets: Number of training sets per coupling, size and number of masked spins.
        seeds: One seed per repetition of the figures.
    """

    sites: Annotated[int, Interval(ge=2, le=6)] = 4
    couplings: Different[Finite] = (0.05, 0.3)
    field: Finite = 0.0
    sizes: Increasing[Count] = (300, 1000, 3000, 10_000)
    data_sets: Annotated[int, Ge(2)] = 10
    seeds: Seeds = tuple(range(12))

    @property
    def pairs(self) -> int:
        """Number of pairs of spins, each of which has a coupling parameter."""
        return self.sites * (self.sites - 1) // 2

    def model(self, coupling: float, pairs: Pairs = "unordered") -> Ising:
        """Return the Ising model that generates the training sets. All its spins are coupled with each other.

        Args:
            coupling: Coupling J between all pairs of spins.
            pairs: "unordered" if the energy counts each pair once, or "ordered" if it counts each pair twice.
        """
        return Ising.clique(self.sites, self.sites, coupling, self.field, pairs=pairs)


PRESETS = {
    "smoke": Config(sizes=(300, 1000), data_sets=2, seeds=(0, 1)),
    "pilot": Config(seeds=tuple(range(100, 108))),
    "default": Config(),
    # Other seeds than `default`, which leaves claims undecided.
    "night": Config(seeds=tuple(range(200, 264))),
    "paper": Config(sizes=(300, 1000, 3000, 10_000, 30_000, 100_000), seeds=tuple(range(100))),
}
