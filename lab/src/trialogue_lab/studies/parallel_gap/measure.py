"""The parts of a run: what is exact, what is simulated, and one network each."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from trialogue_lab.ledger import Part
from trialogue_lab.studies.parallel_gap.cliques import (
    growth_rows,
    hitting_rows,
    one_step_rows,
    simulated_rows,
    stuck_rows,
)
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL, Config
from trialogue_lab.studies.parallel_gap.transitions import Imitation, kernel_rows, network_row, two_mode_rows


def parts(config: Config) -> list[Part]:
    """The exact numbers, the simulated ones, and one part per network; those of the control come last."""
    sizes = config.network_sites
    imitated = [(seed, sites, GIBBS, "gibbs") for seed in config.training_seeds for sites in sizes]
    imitated += [(seed, max(sizes), PARALLEL, "parallel") for seed in config.training_seeds]
    return [
        Part(
            "exact",
            lambda _: chain(one_step_rows(config.instances), hitting_rows(), stuck_rows(), growth_rows()),
        ),
        Part("kernels", lambda _: chain(two_mode_rows(sizes), kernel_rows(sizes, config.coupling))),
        Part("simulated", lambda _: simulated_rows(config.instances, config.runs, config.seeds)),
        *(
            Part(
                f"network-{seed}-{sites}-{step}",
                partial(measure_network, config, of, sites, seed),
                lane=str(seed),
            )
            for seed, sites, of, step in imitated
        ),
    ]


def measure_network(config: Config, of: str, sites: int, seed: int, _: Path) -> Iterator[dict[str, Any]]:
    """A network trained on single steps of a chain."""
    imitation = Imitation(of, sites, config.coupling, config.training_steps, config.batch_size)
    yield {"kind": "network", "seed": seed, **network_row(imitation, seed)}
