"""Configuration of the study and its presets."""

from dataclasses import dataclass

from trialogue_lab.ledger import Count, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Configuration of one run, with the values of the preset `default`.

    The networks are trained like those of the arm "words" of `dyck-attention`.
    """

    seeds: Seeds = tuple(range(5001, 5241))
    types: Count = 2
    depth: Count = 4
    steps: Count = 300
    """Number of updates per network. Each update takes a batch of 100 strings."""
    learning_rate: Positive = 1e-2


PRESETS = {
    "smoke": Config(seeds=tuple(range(10)), steps=60),
    "pilot": Config(seeds=tuple(range(6000, 6012))),
    "default": Config(),
}
