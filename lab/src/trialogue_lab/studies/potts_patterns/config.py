"""Settings of the study: chains at low temperature, texts of random models, and patterns in the plane."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Interval

from trialogue_lab.ledger import Count, Different, Positive, Seeds, Settings


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Potts chains are distributions over token sequences, with an energy that is a sum over windows of successive tokens.

    Args:
        patterns: Numbers of stored patterns of the Potts chains that are computed exactly.
        windows: Numbers of tokens in a window of these chains.
        length: Number of tokens of their sequences. Sequences of eight tokens are also enumerated.
        widths: Numbers of previous tokens that the random models see.
        models: Number of random models per width.
        texts: Number of texts per model and seed.
        colours: Numbers of states of the Potts models on a square lattice.
        side: Side length of the lattice, which has periodic boundaries.
        temperatures: Temperatures, in units of the energy between two different neighbors.
        chains: Number of simulations per number of states and temperature.
        sweeps: Number of sweeps of a simulation.
        seeds: Seeds of texts and simulations.
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
