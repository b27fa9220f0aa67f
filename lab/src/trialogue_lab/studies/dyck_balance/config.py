"""Settings of the study and its presets."""

from dataclasses import dataclass

from trialogue_lab.ledger import Count, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    Networks are trained on strings of matched brackets. Their first layer is a fixed embedding of brackets. They are
    the networks "words" of the study `dyck-attention`.

    Args:
        seeds: Seeds of the networks.
        types: Number of bracket types.
        depth: Largest number of brackets that are open at the same time.
        steps: Number of training steps per network. Each step uses a batch of 100 strings.
        learning_rate: Learning rate.
    """

    seeds: Seeds = tuple(range(5001, 5241))
    types: Count = 2
    depth: Count = 4
    steps: Count = 300
    learning_rate: Positive = 1e-2


PRESETS = {
    "smoke": Config(seeds=tuple(range(10)), steps=60),
    "pilot": Config(seeds=tuple(range(6000, 6012))),
    "default": Config(),
}
