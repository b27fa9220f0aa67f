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
class Instance(Settings):
    """Corollary 4.1.1 with risk `delta` and M = `steps`, on a clique of `clique` of `sites` spins.

    The clique's field, J_0 and k are the least that Assumptions 4.1.6 and 4.1.7 allow; fields are equal inside the
    clique and zero outside. Raises `InputError` where the clique is smaller than they allow.
    """

    delta: Probability
    steps: Count
    clique: Count
    sites: Count

    def check(self) -> None:
        """Raise `InputError` where the assumptions do not hold."""
        _ = self.corollary

    @property
    def corollary(self) -> bounds.OneStep:
        """What the corollary promises."""
        sizes = (self.sites, self.clique, self.block_size, self.least.excess, self.least.clique_field)
        return bounds.one_step_corollary(*sizes, delta=self.delta, steps=self.steps)

    @property
    def label(self) -> str:
        """How tables call it."""
        return f"δ = {self.delta:g}, M = {self.steps:g}, |C| = {self.clique}, N = {self.sites}"

    @property
    def block_size(self) -> int:
        """k."""
        return bounds.least_block_size(self.sites, self.clique, self.delta)

    @property
    def least(self) -> bounds.LeastParameters:
        """J_0 and h_G."""
        return bounds.least_parameters(self.clique, delta=self.delta, steps=self.steps)

    @property
    def field(self) -> float:
        """h of each spin of the clique."""
        return self.least.clique_field / self.clique

    @property
    def log_matrices(self) -> tuple[Array, Array]:
        """Log transition matrices of the number of up spins, by k-Gibbs and by independent parallel updates."""
        coupling = self.least.excess + self.least.clique_field
        blocks = chains.block_chain(self.sites, self.clique, coupling, self.field, self.block_size)
        return blocks, chains.parallel_chain(self.clique, coupling, self.field)

    @property
    def start(self) -> int:
        """The most spins of the clique that are up where the sum of its spins is at most -2."""
        return self.clique // 2 - 1


@dataclass(frozen=True, kw_only=True)
class Config(Settings):
    """`instances` of Corollary 4.1.1; `runs` runs per seed of `seeds`; one network per seed of `training_seeds`.

    Networks imitate steps on cliques of `network_sites` spins (every state is listed) with `coupling` and no field,
    for `training_steps` steps on batches of `batch_size` transitions.
    """

    instances: Some[Instance] = (
        Instance(delta=0.1, steps=100, clique=75, sites=75),
        Instance(delta=0.1, steps=100, clique=75, sites=15000),
        Instance(delta=0.5, steps=10, clique=44, sites=440),
        Instance(delta=0.05, steps=10**6, clique=154, sites=30800),
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
        runs=20, seeds=(0, 1), training_seeds=(0, 1), network_sites=(2, 3), training_steps=40, batch_size=64
    ),
    "pilot": Config(seeds=tuple(range(100, 108)), training_seeds=tuple(range(100, 104))),
    "default": Config(),
    "night": Config(runs=2000, training_seeds=tuple(range(20)), training_steps=2000, batch_size=512),
    "paper": Config(runs=2000, training_seeds=tuple(range(20)), training_steps=4000, batch_size=1024),
}
