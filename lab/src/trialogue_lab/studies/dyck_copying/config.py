"""Settings of the study and its presets."""

from dataclasses import dataclass

from trialogue_lab.ledger import Count, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run. The defaults are the preset `default`.

    Networks are trained to copy: they predict the bracket at each position from an input that contains this bracket.

    Args:
        seeds: Seeds of the networks. One network is trained per seed and architecture.
        steps: Number of training steps. Each step uses a batch of 100 prefixes of bracket strings.
        learning_rate: Learning rate.
        length: Number of brackets in a prefix.
    """

    seeds: Seeds = tuple(range(101, 109))
    steps: Count = 200
    learning_rate: Positive = 3e-3
    length: Count = 28


PRESETS = {
    "smoke": Config(seeds=(0, 1), steps=3),
    "pilot": Config(seeds=(3000, 3001, 3002)),
    "default": Config(),
    "night": Config(seeds=tuple(range(201, 241))),
    # Other seeds than `night`. With 256 networks that all copy every bracket, the claims about fractions are decided.
    "weekend": Config(seeds=tuple(range(301, 557))),
    "paper": Config(seeds=tuple(range(201, 241)), steps=2000),
}
