"""Configuration of the study and its presets."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue_lab.ledger import Count, Increasing, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Configuration of one run, with the values of the preset `default`."""

    seeds: Seeds = tuple(range(101, 111))
    """Seeds of the networks in perfect balance to which noise is added, and of their prefixes."""
    exact_seeds: Seeds = (1, 2, 3)
    """Seeds of the networks that are compared with the exact distribution."""
    chain_seeds: Seeds = tuple(range(1000, 1500))
    """Seeds of the networks for the inequalities of Theorem 2.2.2. Three in ten are constructions with noise."""
    types: Annotated[int, Ge(2)] = 3
    depth: Annotated[int, Ge(2)] = 4
    logits_std: Positive = 2.0
    prefixes: Count = 1000
    """Number of prefixes for the comparison with the exact distribution."""
    longest: Count = 5000
    """Largest length of these prefixes."""
    disturbances: Increasing[Positive] = (0.001, 0.01, 0.1, 1.0)
    """Standard deviations of the noise that is added to attention scores."""
    disturbed_prefixes: Count = 100
    """Number of prefixes per disturbance and range of lengths."""


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
