"""Settings of the study: the random models and mask distributions."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue_lab.ledger import Count, Different, Finite, Seeds, Settings

WEIGHTED = "weighted blocks"
ADAPTIVE = "adaptive blocks"

Deviation = Annotated[Finite, Ge(0)]
"""A standard deviation."""


def make_size_label(size: int) -> str:
    """Return the name of the mask distribution that masks `size` uniformly random variables.

    Args:
        size: Number of masked variables.
    """
    return f"k = {size}"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    A set of random Ising models contains one model per entry of `couplings`. These models use the same random numbers
    and differ only in the scale of their couplings.

    Args:
        sites: Number of spins. All states and masks are enumerated. With two spins, the information matrix is singular.
        couplings: Standard deviations of the normally distributed couplings between spins.
        field: Standard deviation of the normally distributed fields on single spins.
        blocks: Number of random sets of masked spins, for mask distributions that choose among such sets.
        models: Number of models in a set.
        seeds: Seeds of the sets of random models.
    """

    sites: Annotated[int, Interval(ge=3, le=8)] = 5
    couplings: Different[Deviation] = (0.0, 0.1, 0.3, 0.6)
    field: Deviation = 0.3
    blocks: Annotated[int, Ge(2)] = 6
    models: Count = 12
    seeds: Seeds = tuple(range(12))


PRESETS = {
    "smoke": Config(sites=4, couplings=(0.0, 0.3, 0.6), models=3, seeds=(0, 1)),
    "pilot": Config(seeds=tuple(range(100, 105))),
    "default": Config(),
    "night": Config(models=50, seeds=tuple(range(30))),
    "paper": Config(models=200, seeds=tuple(range(30))),
}
