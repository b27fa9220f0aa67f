"""Tasks of a run: exact probabilities, simulations, and one task per trained network."""

from functools import partial
from itertools import chain
from pathlib import Path

from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.parallel_gap import cliques
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL, Config
from trialogue_lab.studies.parallel_gap.transitions import (
    ImitationTask,
    measure_kernels,
    measure_network,
    measure_two_modes,
)


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, which study samplers of Ising models with a clique of coupled spins.

    Args:
        config: Settings of the run.

    Returns:
        Three tasks, and one task per network. The first task computes exact probabilities that all spins of a clique
        turn up. The second one computes how far single steps of samplers are from independent updates of all spins. The
        third one simulates samplers. Each further task trains one network to imitate single steps of a sampler. The
        last networks imitate independent updates, for comparison.
    """

    def exact(_: Path) -> MeasuredRows:
        corollary = cliques.measure_one_step(config.instances)
        return chain(corollary, cliques.measure_hitting(), cliques.measure_stuck(), cliques.measure_growth())

    def simulated(_: Path) -> MeasuredRows:
        corollary = cliques.simulate_corollary(config.instances, config.runs, config.seeds)
        return chain(corollary, cliques.simulate_hitting(config.runs, config.seeds))

    def network(imitated_chain: str, sites: int, seed: int, _: Path) -> MeasuredRows:
        settings = (config.coupling, config.training_steps, config.batch_size)
        yield {
            "kind": "network",
            "seed": seed,
            **measure_network(ImitationTask(imitated_chain, sites, *settings), seed),
        }

    sizes = config.network_sites
    imitated = [(seed, sites, GIBBS, "gibbs") for seed in config.training_seeds for sites in sizes]
    imitated += [(seed, max(sizes), PARALLEL, "parallel") for seed in config.training_seeds]
    return [
        Part("exact", exact),
        Part("kernels", lambda _: chain(measure_two_modes(sizes), measure_kernels(sizes, config.coupling))),
        Part("simulated", simulated),
        *(
            Part(f"network-{seed}-{sites}-{name}", partial(network, kind, sites, seed), lane=str(seed))
            for seed, sites, kind, name in imitated
        ),
    ]
