"""Settings of the study: chains, random autoregressive models, and spins in the plane."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.data import PottsChain
from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Different, Positive, Seeds, Settings
from trialogue_lab.theory.potts.domain_walls import crossing_length

_LONGEST = 100_000


@dataclass(frozen=True, kw_only=True)
class Sampled(Settings):
    """A chain at a temperature whose walls are sampled: its tokens are `patterns` patterns of one token each."""

    patterns: Annotated[int, Ge(2)]
    window: Annotated[int, Ge(2)]
    temperature: Positive

    @property
    def chain(self) -> PottsChain:
        """The chain; every wrong token of a window costs 1."""
        return PottsChain.from_patterns([[token] for token in range(self.patterns)], self.window)

    @property
    def lengths(self) -> tuple[int, ...]:
        """A tenth of the crossing length (no shorter than twice a window), the crossing length, and ten times it."""
        crossing = crossing_length(self.window, self.chain.max_energy, self.temperature, self.patterns)
        return tuple(max(2 * self.window, round(share * crossing)) for share in (0.1, 1.0, 10.0))


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Chains of `patterns` and `windows` at `temperatures` and `lengths`, random energies up to each of `penalties`.

    `sampled` are drawn `chains` times per seed, by Gibbs sampling with `sweeps`; `models` random autoregressive models
    of each of `widths`; tori of `sides` at `plane_temperatures`, `plane_chains` of them for `plane_sweeps`.
    """

    patterns: Different[Count] = (1, 2, 3, 4)
    windows: Different[Annotated[int, Ge(2)]] = (2, 3, 4)
    penalties: Different[Positive] = (0.5, 1.0, 2.0)
    temperatures: Different[Positive] = (0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
    lengths: Different[Count] = (10, 30, 100, 300)
    sampled: Different[Sampled] = (
        Sampled(patterns=2, window=2, temperature=0.3),
        Sampled(patterns=4, window=2, temperature=0.25),
        Sampled(patterns=2, window=3, temperature=0.6),
    )
    chains: Count = 256
    sweeps: Count = 2000
    widths: Different[Count] = (1, 2)
    models: Count = 20
    sides: Different[Annotated[int, Ge(3)]] = (16, 32)
    plane_temperatures: Different[Positive] = (0.8, 1.0, 1.4, 1.8, 2.0, 2.6, 3.2)
    plane_chains: Count = 128
    plane_sweeps: Count = 500
    seeds: Seeds = tuple(range(10))

    def check(self) -> None:
        """Raise `InputError` where fields do not go together."""
        if max(self.patterns) < 2:
            raise InputError("patterns", self.patterns, "walls need two patterns: add a number of at least 2")
        if min(self.lengths) <= max(self.windows):
            raise InputError(
                "lengths", self.lengths, f"use more than the {max(self.windows)} sites of a window"
            )
        for setting in self.sampled:
            if setting.lengths[-1] > _LONGEST:
                raise InputError("sampled", setting, "ten crossing lengths are too long: make it hotter")


PRESETS = {
    "smoke": Config(
        patterns=(1, 2, 3),
        windows=(2, 3),
        penalties=(1.0,),
        temperatures=(0.4, 1.0, 1.5),
        lengths=(10, 40),
        sampled=(
            Sampled(patterns=2, window=2, temperature=0.5),
            Sampled(patterns=3, window=2, temperature=0.4),
        ),
        chains=40,
        sweeps=100,
        models=2,
        sides=(8,),
        plane_temperatures=(1.0, 1.8, 3.2),
        plane_chains=20,
        plane_sweeps=60,
        seeds=(0, 1),
    ),
    "pilot": Config(seeds=tuple(range(100, 108))),
    "default": Config(),
    "night": Config(models=200, plane_sweeps=2000, seeds=tuple(range(30))),
    "paper": Config(models=200, sides=(16, 32, 64), plane_sweeps=2000, seeds=tuple(range(30))),
}
