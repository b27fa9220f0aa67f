"""Where does one joint step of a block reach the larger mode while independent parallel updates never do, and why?

Propositions 4.1.4 and 4.1.5 and Corollary 4.1.1 of the thesis, on ferromagnetic cliques that meet their assumptions:
k-Gibbs is in the larger mode after one step, independent parallel updates stay around the other one for M steps. Exact
numbers come from the chain of the number of up spins, at any size; simulated ones run the samplers on whole states. The
constants are the corrected ones, with those in print beside them, and Proposition 4.1.5 is also tried where its
assumptions, as printed, hold and its proof does not.

Propositions 4.1.2 and 4.1.3: what draws every position by itself given the state has products as transitions. A small
bidirectional transformer is trained on single steps of k-Gibbs on a clique and held against the step's own law, beside
the best product law, in KL and in total variation; trained on steps of independent parallel updates it is a control.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trialogue.errors import InputError, whole_number
from trialogue.ledger.study import Study, require_seeds
from trialogue.studies.parallel_gap_clique_claims import CLIQUE_CLAIMS
from trialogue.studies.parallel_gap_cliques import (
    Instance,
    growth_rows,
    hitting_rows,
    one_step_rows,
    simulated_rows,
    stuck_rows,
)
from trialogue.studies.parallel_gap_figures import FIGURES
from trialogue.studies.parallel_gap_network_claims import NETWORK_CLAIMS
from trialogue.studies.parallel_gap_networks import Imitation, kernel_rows, network_row, two_mode_rows
from trialogue.studies.parallel_gap_rows import GIBBS, PARALLEL
from trialogue.studies.parallel_gap_tables import TABLES


@dataclass(frozen=True)
class Config:
    """`instances` of Corollary 4.1.1; `runs` runs per seed of `seeds`; one network per seed of `training_seeds`.

    Networks imitate steps on cliques of `network_sites` spins with `coupling` and no field, for `training_steps` steps
    on batches of `batch_size` transitions.
    """

    instances: tuple[Instance, ...] = (
        Instance(delta=0.1, steps=100, clique=75, sites=75),
        Instance(delta=0.1, steps=100, clique=75, sites=15000),
        Instance(delta=0.5, steps=10, clique=44, sites=440),
        Instance(delta=0.05, steps=10**6, clique=154, sites=30800),
    )
    runs: int = 200
    seeds: tuple[int, ...] = tuple(range(20))
    training_seeds: tuple[int, ...] = tuple(range(6))
    network_sites: tuple[int, ...] = (2, 3, 4)
    coupling: float = 2.0
    training_steps: int = 600
    batch_size: int = 256

    def __post_init__(self) -> None:
        if not self.instances:
            raise InputError("instances", self.instances, "give one or more")
        for field in ("seeds", "training_seeds"):
            require_seeds(field, getattr(self, field))
        if not self.network_sites or not 2 <= min(self.network_sites) <= max(self.network_sites) <= 5:
            raise InputError(
                "network_sites", self.network_sites, "every state is listed: give numbers from 2 to 5"
            )
        if not (self.coupling > 0 and math.isfinite(self.coupling)):
            raise InputError("coupling", self.coupling, "two modes need a finite number above 0")
        for field in ("runs", "training_steps", "batch_size"):
            whole_number(field, getattr(self, field), 1)


PRESETS = {
    "smoke": Config(
        runs=20, seeds=(0, 1), training_seeds=(0, 1), network_sites=(2, 3), training_steps=40, batch_size=64
    ),
    "default": Config(),
    "paper": Config(runs=2000, training_seeds=tuple(range(20)), training_steps=4000, batch_size=1024),
}


def parts(config: Config) -> list[str]:
    """The exact numbers, the simulated ones, and one part per network."""
    networks = [
        f"network-{seed}-{sites}-gibbs" for seed in config.training_seeds for sites in config.network_sites
    ]
    controls = [f"network-{seed}-{max(config.network_sites)}-parallel" for seed in config.training_seeds]
    return ["exact", "kernels", "simulated", *networks, *controls]


def run(config: Config, part: str, artifacts: Path) -> Iterator[dict[str, Any]]:
    """Measure one part."""
    del artifacts
    if part == "exact":
        yield from one_step_rows(config.instances)
        yield from hitting_rows()
        yield from stuck_rows()
        yield from growth_rows()
    elif part == "kernels":
        yield from two_mode_rows(config.network_sites)
        yield from kernel_rows(config.network_sites, config.coupling)
    elif part == "simulated":
        yield from simulated_rows(config.instances, config.runs, config.seeds)
    else:
        _, seed, sites, step = part.split("-")
        chain = GIBBS if step == "gibbs" else PARALLEL
        imitation = Imitation(chain, int(sites), config.coupling, config.training_steps, config.batch_size)
        yield {"kind": "network", "seed": int(seed), **network_row(imitation, int(seed))}


STUDY = Study(
    name="parallel-gap",
    doc=__doc__,
    source="Thesis section 4.1.2: Propositions 4.1.2 to 4.1.5, Corollary 4.1.1; section 4.3",
    version=1,
    presets=PRESETS,
    parts=parts,
    lane=lambda part: part if part.startswith(("exact", "kernels", "simulated")) else part.split("-")[1],
    run=run,
    claims=(*CLIQUE_CLAIMS, *NETWORK_CLAIMS),
    tables=TABLES,
    figures=FIGURES,
)
