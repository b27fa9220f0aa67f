"""Settings of the study: sizes of the language, and how many networks and prefixes."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue_lab.ledger import Count, Increasing, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = tuple(range(101, 111))
    """Networks in perfect balance, disturbed; prefixes are drawn by seed too."""
    exact_seeds: Seeds = (1, 2, 3)
    """Networks whose laws are compared with the exact one on many prefixes."""
    chain_seeds: Seeds = tuple(range(1000, 1500))
    """Networks that Theorem 2.2.2's inequalities are evaluated on: three in ten are disturbed constructions."""
    types: Annotated[int, Ge(2)] = 3
    depth: Annotated[int, Ge(2)] = 4
    logits_std: Positive = 2.0
    prefixes: Count = 1000
    longest: Count = 5000
    """Prefixes that laws are compared on, of any length up to this."""
    disturbances: Increasing[Positive] = (0.001, 0.01, 0.1, 1.0)
    """Standard deviations of what is added to scores of attention."""
    disturbed_prefixes: Count = 100
    """Prefixes for each disturbance and range of lengths."""


PRESETS = {
    "smoke": Config(
        seeds=(0, 1),
        exact_seeds=(0,),
        chain_seeds=(0, 1, 2, 3),
        prefixes=8,
        longest=200,
        disturbed_prefixes=5,
    ),
    "pilot": Config(
        seeds=(3000, 3001, 3002, 3003),
        exact_seeds=(3010,),
        chain_seeds=tuple(range(3100, 3120)),
        prefixes=100,
    ),
    "default": Config(),
}
