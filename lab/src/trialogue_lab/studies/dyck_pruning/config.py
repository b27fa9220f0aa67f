"""Settings of the study: draws of random networks and targets, and sizes."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from trialogue_lab.ledger import Count, Increasing, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = tuple(range(301, 331))
    """Random networks and targets are drawn by seed."""
    counts: Increasing[Annotated[int, Interval(ge=4, le=30)]] = (8, 12, 16, 20, 24)
    """Products of two weights that a subset of is to be one weight."""
    targets: Count = 5
    """Numbers for each count; what is reported is the worst."""
    sizes: Increasing[Count] = (1, 2, 4)
    """Rows and columns of the matrices that networks are pruned to."""
    units: Increasing[Annotated[int, Interval(ge=4, le=20)]] = (5, 10, 15, 20)
    """Hidden units for each input and side of zero, on average."""
    inputs: Count = 200
    layers: Increasing[Count] = (1, 2)
    """Layers of the target transformers; the random ones have four for each."""
    hidden: Increasing[Annotated[int, Interval(ge=16, le=256)]] = (96, 128, 192, 256)
    """Width of the networks and keys of the random transformers: eight times the products for each weight."""


PRESETS = {
    "smoke": Config(seeds=(0, 1), counts=(4, 8), units=(4, 6), sizes=(1, 2), layers=(1,), hidden=(16, 32)),
    "pilot": Config(seeds=tuple(range(3200, 3206))),
    "default": Config(),
    "paper": Config(seeds=tuple(range(301, 401)), sizes=(1, 2, 4, 8)),
}
