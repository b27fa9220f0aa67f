"""Configuration of the study and its presets."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from trialogue_lab.ledger import Count, Increasing, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Configuration of one run, with the values of the preset `default`."""

    seeds: Seeds = tuple(range(301, 331))
    """Seeds of the random networks and targets."""
    counts: Increasing[Annotated[int, Interval(ge=4, le=30)]] = (8, 12, 16, 20, 24)
    """Numbers of products of two random weights. A subset of the products approximates one number."""
    targets: Count = 5
    """Number of target numbers per count. The largest error is reported."""
    sizes: Increasing[Count] = (1, 2, 4)
    """Numbers of rows and columns of the target matrices."""
    units: Increasing[Annotated[int, Interval(ge=4, le=20)]] = (5, 10, 15, 20)
    """Average numbers of hidden units per input and sign."""
    inputs: Count = 200
    layers: Increasing[Count] = (1, 2)
    """Numbers of layers of the target transformers. The random transformers have four layers for each of them."""
    hidden: Increasing[Annotated[int, Interval(ge=16, le=256)]] = (96, 128, 192, 256)
    """Widths of the keys and hidden layers of the random transformers: eight times the products per weight."""


PRESETS = {
    "smoke": Config(seeds=(0, 1), counts=(4, 8), units=(4, 6), sizes=(1, 2), layers=(1,), hidden=(16, 32)),
    "pilot": Config(seeds=tuple(range(3200, 3206))),
    "default": Config(),
    "paper": Config(seeds=tuple(range(301, 401)), sizes=(1, 2, 4, 8)),
}
