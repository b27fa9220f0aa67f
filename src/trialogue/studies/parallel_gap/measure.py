"""The parts of a run: what is exact, what is simulated, and one network each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from trialogue.ledger import Part
from trialogue.studies.parallel_gap.cliques import (
    growth_rows,
    hitting_rows,
    one_step_rows,
    simulated_rows,
    stuck_rows,
)
from trialogue.studies.parallel_gap.config import GIBBS, PARALLEL, Config
from trialogue.studies.parallel_gap.transitions import Imitation, kernel_rows, network_row, two_mode_rows

Rows = Iterator[dict[str, Any]]


def parts(config: Config) -> list[Part]:
    """The exact numbers, the simulated ones, and one part per network; those of the control come last."""
    imitated = [(seed, sites, "gibbs") for seed in config.training_seeds for sites in config.network_sites]
    imitated += [(seed, max(config.network_sites), "parallel") for seed in config.training_seeds]
    return [
        Part("exact", partial(measure_exact, config)),
        Part("kernels", partial(measure_kernels, config)),
        Part("simulated", partial(measure_simulated, config)),
        *(
            Part(
                f"network-{seed}-{sites}-{step}",
                partial(measure_network, config, {"gibbs": GIBBS, "parallel": PARALLEL}[step], sites, seed),
                lane=str(seed),
            )
            for seed, sites, step in imitated
        ),
    ]


def measure_exact(config: Config, artifacts: Path) -> Rows:
    """Propositions 4.1.4 and 4.1.5 and Corollary 4.1.1 by the chain of the number of up spins."""
    del artifacts
    yield from one_step_rows(config.instances)
    yield from hitting_rows()
    yield from stuck_rows()
    yield from growth_rows()


def measure_kernels(config: Config, artifacts: Path) -> Rows:
    """How far two equal modes, and the steps of each chain, are from products."""
    del artifacts
    yield from two_mode_rows(config.network_sites)
    yield from kernel_rows(config.network_sites, config.coupling)


def measure_simulated(config: Config, artifacts: Path) -> Rows:
    """The samplers on whole states."""
    del artifacts
    yield from simulated_rows(config.instances, config.runs, config.seeds)


def measure_network(config: Config, chain: str, sites: int, seed: int, artifacts: Path) -> Rows:
    """A network trained on single steps of a chain."""
    del artifacts
    imitation = Imitation(chain, sites, config.coupling, config.training_steps, config.batch_size)
    yield {"kind": "network", "seed": seed, **network_row(imitation, seed)}
