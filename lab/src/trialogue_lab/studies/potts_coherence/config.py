"""Settings of the study: chains, random autoregressive models, and spins in the plane."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from trialogue.data import PottsChain
from trialogue.errors import InputError
from trialogue_lab.ledger import Count, Different, Positive, Seeds, Settings
from trialogue_lab.theory.potts.domain_walls import crossing_length

_MAX_LENGTH = 100_000


@dataclass(frozen=True, kw_only=True)
class SampledChain(Settings):
    """A Potts chain and a temperature at which sequences are sampled to count domain walls.

    A Potts chain is a distribution over token sequences whose energy is a sum over windows of successive tokens. A
    domain wall is a position where a sequence changes from one stored pattern to another.

    Args:
        patterns: Number of stored patterns. Each one repeats one token.
        window: Number of tokens in a window.
        temperature: Temperature, in units of the energy of a wrong token.
    """

    patterns: Annotated[int, Ge(2)]
    window: Annotated[int, Ge(2)]
    temperature: Positive

    @property
    def chain(self) -> PottsChain:
        """The Potts chain, in which every wrong token of a window costs energy 1."""
        return PottsChain.from_patterns([[token] for token in range(self.patterns)], self.window)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the sampled sequences: 1/10, 1 and 10 times the length from which domain walls are likely.

        All lengths are at least two windows.
        """
        crossing = crossing_length(self.window, self.chain.max_energy, self.temperature, self.patterns)
        return tuple(max(2 * self.window, round(share * crossing)) for share in (0.1, 1.0, 10.0))


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Potts chains are distributions over token sequences, with an energy that is a sum over windows of successive tokens.
    Exact properties are computed for all combinations of patterns, windows, temperatures and lengths.

    Args:
        patterns: Numbers of stored patterns of the Potts chains.
        windows: Numbers of tokens in a window, on which the energy depends.
        penalties: Largest window energies of the chains with random energies.
        temperatures: Temperatures.
        lengths: Sequence lengths in tokens.
        sampled: Chains whose sequences are sampled.
        chains: Number of sampled sequences per chain, length and seed.
        sweeps: Number of sweeps of Gibbs sampling of a sequence.
        widths: Numbers of previous tokens that the random autoregressive models depend on.
        models: Number of random autoregressive models per width.
        sides: Side lengths of the square lattices of Ising spins with periodic boundaries.
        plane_temperatures: Temperatures of the Ising spins.
        plane_chains: Number of simulations per lattice and temperature.
        plane_sweeps: Number of sweeps of a simulation.
        seeds: Seeds of the samples and simulations.
    """

    patterns: Different[Count] = (1, 2, 3, 4)
    windows: Different[Annotated[int, Ge(2)]] = (2, 3, 4)
    penalties: Different[Positive] = (0.5, 1.0, 2.0)
    temperatures: Different[Positive] = (0.2, 0.3, 0.5, 1.0, 2.0, 5.0)
    lengths: Different[Count] = (10, 30, 100, 300)
    sampled: Different[SampledChain] = (
        SampledChain(patterns=2, window=2, temperature=0.3),
        SampledChain(patterns=4, window=2, temperature=0.25),
        SampledChain(patterns=2, window=3, temperature=0.6),
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
        """Raise `InputError` if fields contradict each other."""
        if max(self.patterns) < 2:
            raise InputError("patterns", self.patterns, "include at least 2, because walls need two patterns")
        if min(self.lengths) <= max(self.windows):
            raise InputError(
                "lengths", self.lengths, f"use more than {max(self.windows)}, the longest window"
            )
        for setting in self.sampled:
            if setting.lengths[-1] > _MAX_LENGTH:
                raise InputError(
                    "sampled", setting, "use a higher temperature: ten crossing lengths are too long"
                )


PRESETS = {
    "smoke": Config(
        patterns=(1, 2, 3),
        windows=(2, 3),
        penalties=(1.0,),
        temperatures=(0.4, 1.0, 1.5),
        lengths=(10, 40),
        sampled=(
            SampledChain(patterns=2, window=2, temperature=0.5),
            SampledChain(patterns=3, window=2, temperature=0.4),
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
