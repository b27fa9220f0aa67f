"""Settings of the study: how large the random laws are, and for how long the flows run."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue_lab.ledger import Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Every seed is one law of `size` tokens besides x_0, with initial weights."""

    seeds: Seeds = tuple(range(1, 21))
    size: Annotated[int, Interval(ge=2, le=4)] = 3
    """Gaussian moments are checked on a grid of 4^(size + 1) points."""
    samples: Annotated[int, Ge(100)] = 4000
    """Samples that make up each law of three bodies."""
    draws: Annotated[int, Ge(1000)] = 200_000
    """Monte Carlo draws against which Gaussian moments are held."""
    decay: Positive = 0.1
    time: Positive = 80.0
    """How long the flows on Gaussian tokens run."""


PRESETS = {
    "smoke": Config(seeds=(0, 1), samples=500, draws=2000),
    "pilot": Config(seeds=tuple(range(1000, 1006))),
    "default": Config(),
    "night": Config(seeds=tuple(range(1, 201)), size=4, draws=1_000_000),
}
