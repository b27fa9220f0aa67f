"""Tasks of a run: exact probabilities, simulations, and one task per trained network."""

from functools import partial
from itertools import chain
from pathlib import Path

from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.parallel_gap import cliques
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL, Config
from trialogue_lab.studies.parallel_gap.transitions import Imitation, kernel_rows, network_row, two_mode_rows


def parts(config: Config) -> list[Part]:
    """Return the tasks of a run.

    Args:
        config: Settings of the run.

    Returns:
        One task for exact probabilities, one for distances to distributions of independent spins, one for simulations,
        and one per trained network. Networks that imitate independent parallel updates, the control, come last.
    """

    def exact(_: Path) -> MeasuredRows:
        corollary = cliques.one_step_rows(config.instances)
        return chain(corollary, cliques.hitting_rows(), cliques.stuck_rows(), cliques.growth_rows())

    def simulated(_: Path) -> MeasuredRows:
        corollary = cliques.simulated_corollary_rows(config.instances, config.runs, config.seeds)
        return chain(corollary, cliques.simulated_hitting_rows(config.runs, config.seeds))

    def network(imitated_chain: str, sites: int, seed: int, _: Path) -> MeasuredRows:
        settings = (config.coupling, config.training_steps, config.batch_size)
        yield {
            "kind": "network",
            "seed": seed,
            **network_row(Imitation(imitated_chain, sites, *settings), seed),
        }

    sizes = config.network_sites
    imitated = [(seed, sites, GIBBS, "gibbs") for seed in config.training_seeds for sites in sizes]
    imitated += [(seed, max(sizes), PARALLEL, "parallel") for seed in config.training_seeds]
    return [
        Part("exact", exact),
        Part("kernels", lambda _: chain(two_mode_rows(sizes), kernel_rows(sizes, config.coupling))),
        Part("simulated", simulated),
        *(
            Part(f"network-{seed}-{sites}-{name}", partial(network, kind, sites, seed), lane=str(seed))
            for seed, sites, kind, name in imitated
        ),
    ]
