"""Settings of the study: the random models and mask laws."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue_lab.ledger import Count, Different, Finite, Seeds, Settings

WEIGHTED = "weighted blocks"
ADAPTIVE = "adaptive blocks"

Deviation = Annotated[Finite, Ge(0)]
"""A standard deviation."""


def size_label(size: int) -> str:
    """How rows call k uniformly random masked sites."""
    return f"k = {size}"


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Ising models of `sites` spins; couplings and fields are normal, with deviations from `couplings` and `field`.

    Every seed is one set of `models` models at each coupling, the same ones but for its size, with mask laws of
    `blocks` random blocks.
    """

    sites: Annotated[int, Interval(ge=3, le=8)] = 5
    """Every state and mask is listed; two spins have fewer states than features, and a singular information."""
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
