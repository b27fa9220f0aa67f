"""Settings of the study: instances of Corollary 4.1.1, and networks that imitate single steps."""

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval

from trialogue_lab.ledger import Count, Positive, Probability, Seeds, Settings, Some
from trialogue_lab.theory.cliques import bounds, chains
from trialogue_lab.theory.cliques.chains import Array

GIBBS = "k-Gibbs"
PARALLEL = "independent parallel"


@dataclass(frozen=True, kw_only=True)
class CorollaryInstance(Settings):
    """An Ising model with a clique of coupled spins, and numbers of steps (Corollary 4.1.1).

    The corollary compares one step of k-Gibbs, which resamples k random spins jointly, with M independent
    updates of all spins. Couplings, fields and k are the smallest that its assumptions allow. Spins outside
    the clique have no couplings and fields.

    Args:
        delta: Failure probability δ of the corollary.
        steps: Number M of independent parallel updates.
        clique: Number |C| of spins of the clique.
        sites: Number N of all spins.

    Raises:
        InputError: If the clique is smaller than the assumptions allow.
    """

    delta: Probability
    steps: Count
    clique: Count
    sites: Count

    def check(self) -> None:
        """Raise `InputError` if the assumptions of Corollary 4.1.1 do not hold."""
        _ = self.corollary

    @property
    def corollary(self) -> bounds.OneStepBounds:
        """Bounds of Corollary 4.1.1 on the numbers of steps that two samplers of this Ising model need."""
        sizes = (self.sites, self.clique, self.block_size, self.least.excess, self.least.clique_field)
        return bounds.one_step_corollary(*sizes, delta=self.delta, steps=self.steps)

    @property
    def label(self) -> str:
        """Name of the instance in rows and tables, with its parameters."""
        return f"δ = {self.delta:g}, M = {self.steps:g}, |C| = {self.clique}, N = {self.sites}"

    @property
    def block_size(self) -> int:
        """The smallest number k of jointly resampled spins for which Corollary 4.1.1 holds."""
        return bounds.smallest_block_size(self.sites, self.clique, self.delta)

    @property
    def least(self) -> bounds.SmallestParameters:
        """Smallest field and coupling of the clique (set of coupled spins) for which Corollary 4.1.1 holds.

        The field h_G is the sum of the fields of all spins in the clique. The excess J_0 is the coupling between two
        spins of the clique minus h_G. Both are in units of the temperature.
        """
        return bounds.smallest_parameters(self.clique, delta=self.delta, steps=self.steps)

    @property
    def field(self) -> float:
        """The field h of each spin of the clique (set of coupled spins), in units of the temperature."""
        return self.least.clique_field / self.clique

    @property
    def log_matrices(self) -> tuple[Array, Array]:
        """Log transition matrices of two samplers, with the number of coupled spins that point up as the state.

        The first one is for k-Gibbs, which resamples k random spins jointly. The second one is for independent parallel
        updates.
        """
        coupling = self.least.excess + self.least.clique_field
        blocks = chains.block_chain(self.sites, self.clique, coupling, self.field, self.block_size)
        return blocks, chains.parallel_chain(self.clique, coupling, self.field)

    @property
    def start(self) -> int:
        """Number of coupled spins that point up when the independent parallel updates start."""
        return self.clique // 2 - 1


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """Settings of one run.

    Corollary 4.1.1 compares one joint step of a sampler with many independent parallel steps. Networks are also trained
    to imitate single steps of both samplers.

    Args:
        instances: Instances of the corollary, which are Ising models with numbers of steps.
        runs: Number of simulated runs per seed.
        seeds: Seeds of the simulations.
        training_seeds: Seeds of the networks.
        network_sites: Numbers of spins of the Ising models on which networks imitate single steps of a sampler. All
            states are enumerated.
        coupling: Coupling between all pairs of spins of these models, which have no fields.
        training_steps: Number of training steps of a network.
        batch_size: Number of pairs of a state and the next state in a batch.
    """

    instances: Some[CorollaryInstance] = (
        CorollaryInstance(delta=0.1, steps=100, clique=75, sites=75),
        CorollaryInstance(delta=0.1, steps=100, clique=75, sites=15000),
        CorollaryInstance(delta=0.5, steps=10, clique=44, sites=440),
        CorollaryInstance(delta=0.05, steps=10**6, clique=154, sites=30800),
    )
    runs: Count = 200
    seeds: Seeds = tuple(range(20))
    training_seeds: Seeds = tuple(range(6))
    network_sites: Some[Annotated[int, Interval(ge=2, le=5)]] = (2, 3, 4)
    coupling: Positive = 2.0
    training_steps: Count = 600
    batch_size: Count = 256


PRESETS = {
    "smoke": Config(
        runs=20, seeds=(0,), training_seeds=(0,), network_sites=(2, 3), training_steps=40, batch_size=64
    ),
    "pilot": Config(seeds=tuple(range(100, 108)), training_seeds=tuple(range(100, 104))),
    "default": Config(),
    "night": Config(runs=2000, training_seeds=tuple(range(20)), training_steps=2000, batch_size=512),
    "paper": Config(runs=2000, training_seeds=tuple(range(20)), training_steps=4000, batch_size=1024),
}
