"""Settings of the study: cold chains, texts of random models, and patterns in the plane."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue_lab.ledger import Count, Different, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Chains of `patterns` and `windows`, listed at eight tokens and solved at `length`.

    `models` random models of each of `widths` write `texts` texts per seed. Each number of `colours` on a torus of
    `side` runs `chains` chains for `sweeps` sweeps at each of `temperatures`, in units of what a wall costs.
    """

    patterns: Different[Count] = (1, 2, 3, 4)
    windows: Different[Annotated[int, Ge(2)]] = (2, 3, 4)
    length: Annotated[int, Ge(10)] = 300
    widths: Different[Count] = (1, 2)
    models: Count = 5
    texts: Count = 200
    colours: Different[Annotated[int, Interval(ge=2, le=16)]] = (2, 3, 4, 10)
    side: Annotated[int, Ge(3)] = 16
    temperatures: Different[Positive] = (0.5, 0.65, 0.82)
    chains: Count = 64
    sweeps: Count = 300
    seeds: Seeds = tuple(range(8))


PRESETS = {
    "smoke": Config(
        patterns=(1, 2),
        windows=(2, 3),
        length=40,
        models=1,
        texts=40,
        colours=(2, 4, 10),
        side=8,
        chains=10,
        sweeps=60,
        seeds=(0, 1),
    ),
    "pilot": Config(seeds=tuple(range(100, 104))),
    "default": Config(),
    "night": Config(models=20, texts=1000, side=32, sweeps=2000, seeds=tuple(range(20))),
    "paper": Config(models=100, texts=1000, side=64, sweeps=5000, seeds=tuple(range(30))),
}
