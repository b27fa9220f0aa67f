"""Settings of the study: the networks of each kind, and how long they are trained."""

from dataclasses import dataclass

from trialogue.errors import InputError
from trialogue.ledger.settings import Count, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run; the defaults are those of the preset `default`."""

    seeds: Seeds = tuple(range(101, 107))
    """Networks with a minimal first layer, each with and without the regulariser, on words and on prefixes."""
    standard_seeds: Seeds = tuple(range(201, 205))
    """Networks of two layers that read tokens."""
    pairs: Count = 3
    """Pairs of `seeds` whose attention is compared: half as many."""
    standard_pairs: Count = 2
    """The same for `standard_seeds`."""
    types: Count = 2
    depth: Count = 4
    steps: Count = 300
    """Updates of a minimal network, 100 strings each."""
    learning_rate: Positive = 1e-2
    standard_steps: Count = 800
    standard_learning_rate: Positive = 3e-3
    contrast_weight: Positive = 0.3

    def check(self) -> None:
        """Raise `InputError` where seeds do not make the pairs."""
        for name in ("", "standard_"):
            seeds, pairs = getattr(self, f"{name}seeds"), getattr(self, f"{name}pairs")
            if len(seeds) != 2 * pairs:
                raise InputError(f"{name}pairs", pairs, f"use half the number of {name}seeds, {len(seeds)}")


PRESETS = {
    "smoke": Config(
        seeds=(0, 1), standard_seeds=(2, 3), pairs=1, standard_pairs=1, steps=3, standard_steps=2
    ),
    "pilot": Config(seeds=(3000, 3001, 3002, 3003), standard_seeds=(3010, 3011), pairs=2, standard_pairs=1),
    "default": Config(),
    "night": Config(
        seeds=tuple(range(101, 141)),
        pairs=20,
        standard_seeds=tuple(range(201, 241)),
        standard_pairs=20,
        steps=600,
        standard_steps=3000,
    ),
}
