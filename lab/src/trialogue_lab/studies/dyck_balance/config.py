"""Settings of the study: how many networks are trained, and how long."""

from dataclasses import dataclass

from trialogue_lab.ledger import Count, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The training is that of the arm "words" of `dyck-attention`."""

    seeds: Seeds = tuple(range(5001, 5241))
    types: Count = 2
    depth: Count = 4
    steps: Count = 300
    """Updates of a network, 100 strings each."""
    learning_rate: Positive = 1e-2


PRESETS = {
    "smoke": Config(seeds=tuple(range(10)), steps=60),
    "pilot": Config(seeds=tuple(range(6000, 6012))),
    "default": Config(),
}
