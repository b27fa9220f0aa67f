"""How many steps take dependent and independent parallel updates from the smaller to the larger mode of an Ising model?

Figure 4.3 of the thesis: ten spins in a field h = 5, four of them coupled with J, all start down. Steps are counted
until the four are up, for k-Gibbs with k = 1 to 10 and for the independent parallel sampler, at most 1000. Beside the
simulated numbers stand the exact ones: on the number of up spins both samplers are Markov chains of five states, whose
hitting times are solved for without subtraction, also where they are 1e20.

The thesis does not print its couplings. Pairs are unordered; where every pair is counted twice, J here is 2 J there,
so that the couplings 2, 4, 6 and 8 are 1, 2, 3 and 4 of that reading. One replication is one repetition of the figure:
ten chains in every cell.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.data import Ising
from trialogue.errors import InputError, whole_number
from trialogue.inference import BlockGibbs, IndependentParallel, hitting_times
from trialogue.ledger.study import Study, require_seeds
from trialogue.oracles import Chain
from trialogue.randomness import seed_of
from trialogue.studies.ising_sampling_claims import CLAIMS
from trialogue.studies.ising_sampling_figures import FIGURES
from trialogue.studies.ising_sampling_rows import PARALLEL, block_label
from trialogue.studies.ising_sampling_tables import TABLES
from trialogue.theory.cliques.chains import (
    block_chain,
    hitting_probability,
    log_hitting_times,
    parallel_chain,
)


@dataclass(frozen=True)
class Config:
    """`sites` spins in a field, the first `clique` of them coupled with each of `couplings`.

    Every seed is one repetition of the figure, with `chains` chains in every cell, stopped after `budget` steps.
    """

    sites: int = 10
    clique: int = 4
    field: float = 5.0
    couplings: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    block_sizes: tuple[int, ...] = tuple(range(1, 11))
    budget: int = 1000
    chains: int = 10
    seeds: tuple[int, ...] = tuple(range(30))

    def __post_init__(self) -> None:
        whole_number("sites", self.sites, 2)
        if not 2 <= whole_number("clique", self.clique, 2) <= self.sites:
            raise InputError("clique", self.clique, f"use 2 to sites={self.sites}")
        if not math.isfinite(self.field):
            raise InputError("field", self.field, "use a finite number")
        if not self.couplings or not all(map(math.isfinite, self.couplings)):
            raise InputError("couplings", self.couplings, "give one or more finite numbers")
        for field in ("couplings", "block_sizes"):
            if len(set(getattr(self, field))) < len(getattr(self, field)):
                raise InputError(field, getattr(self, field), "give different ones")
        if not self.block_sizes or not 1 <= min(self.block_sizes) <= max(self.block_sizes) <= self.sites:
            raise InputError("block_sizes", self.block_sizes, f"give numbers from 1 to sites={self.sites}")
        require_seeds("seeds", self.seeds)
        whole_number("budget", self.budget, 1)
        whole_number("chains", self.chains, 2)

    def model(self, coupling: float) -> Ising:
        """The model that is sampled from."""
        return Ising.clique(self.sites, self.clique, coupling, self.field)


PRESETS = {
    "smoke": Config(block_sizes=(1, 4, 6, 8, 10), budget=60, chains=4, seeds=(0, 1)),
    "default": Config(),
    "paper": Config(seeds=tuple(range(100))),
}


def parts(config: Config) -> list[str]:
    """One part per coupling."""
    return [f"coupling-{place}" for place in range(len(config.couplings))]


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure one coupling."""
    del artifacts
    coupling = config.couplings[int(part.rpartition("-")[2])]
    # Assumption 4.1.5 wants both margins positive; the second is J_0.
    outside = config.sites - config.clique
    yield {
        "kind": "setting",
        "coupling": coupling,
        "budget": config.budget,
        "field_margin": config.clique * config.field - outside * abs(config.field),
        "coupling_margin": coupling - config.sites * abs(config.field),
    }
    samplers: dict[str, tuple[int | None, Chain[Any], NDArray[np.float64]]] = {
        block_label(size): (
            size,
            BlockGibbs(size),
            block_chain(config.sites, config.clique, coupling, config.field, size),
        )
        for size in config.block_sizes
    }
    parallel = parallel_chain(config.clique, coupling, config.field)
    samplers[PARALLEL] = (None, IndependentParallel(), parallel)
    for name, (size, chain, log_matrix) in samplers.items():
        common = {"coupling": coupling, "chain": name, "block_size": size}
        yield {"kind": "exact", **common, **exact_row(log_matrix, config.budget)}
        for row in simulated_rows(config, coupling, name, chain):
            yield {"kind": "simulated", **common, **row}


def exact_row(log_matrix: NDArray[np.float64], budget: int) -> dict[str, float]:
    """The law of the hitting time T from no spin up to all of them up; `log_matrix` (states, states).

    `log_expected` is log E T, `mean` and `deviation` are those of min(T, budget), `reached` is P(T <= budget).
    """
    waiting = np.exp(log_matrix)[:-1, :-1]
    law = np.zeros(len(waiting))
    law[0] = 1.0
    first = second = 0.0
    for step in range(budget):
        first += law.sum()
        second += (2 * step + 1) * law.sum()
        law = law @ waiting
    return {
        "log_expected": float(log_hitting_times(log_matrix)[0]),
        "mean": float(first),
        "deviation": math.sqrt(max(0.0, second - first**2)),
        "reached": float(hitting_probability(log_matrix, budget)[0]),
    }


def simulated_rows(
    config: Config, coupling: float, name: str, chain: Chain[Any]
) -> Iterator[dict[str, float | int]]:
    """One row per repetition: mean and deviation of min(T, budget) over its chains, and how many got there."""

    def in_larger_mode(tokens: Tensor) -> Tensor:
        return (tokens[:, : config.clique] == 1).all(1)

    places = torch.arange(config.chains)
    found = hitting_times(
        chain,
        config.model(coupling),
        start=torch.zeros(len(config.seeds) * config.chains, config.sites, dtype=torch.int64),
        target=in_larger_mode,
        budget=config.budget,
        seed=seed_of(0, "ising-sampling", coupling, name),
        # A chain's stream is named by its repetition, whatever other repetitions are run beside it.
        chain_ids=torch.cat([seed * config.chains + places for seed in config.seeds]),
    )
    steps = found.steps.double().view(-1, config.chains)
    reached = (~found.censored).double().view(-1, config.chains)
    for place, seed in enumerate(config.seeds):
        yield {
            "seed": seed,
            "mean": float(steps[place].mean()),
            "deviation": float(steps[place].std()),
            "reached": float(reached[place].mean()),
        }


STUDY = Study(
    name="ising-sampling",
    doc=__doc__,
    source="Thesis section 4.2.1.2: Figure 4.3; Definitions 4.1.10 and 4.1.11",
    version=1,
    presets=PRESETS,
    parts=parts,
    run=run,
    claims=CLAIMS,
    tables=TABLES,
    figures=FIGURES,
)
