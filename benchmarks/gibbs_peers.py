"""Samplers of Ising models by other packages on one ring, for `gibbs.py`; runs in any Python that has some of them.

Prints one JSON line per contender: its name, and either what is missing, or site updates, CPU seconds, and the mean of
x_i x_(i+1) over the ring in each independent sample.

    python benchmarks/gibbs_peers.py 1000 0.5
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

# Read when the libraries load.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import numpy as np

READS, SWEEPS = 64, 500

Measured = tuple[int, float, Any]
"""Site updates, CPU seconds, and the mean of x_i x_(i+1) in each independent sample."""


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    answer = run()
    return time.process_time() - began, answer


def correlations(spins: Any) -> Any:
    """Means over the ring of `spins` (samples, N) of -1 and 1."""
    spins = np.asarray(spins, float)
    return (spins * np.roll(spins, 1, 1)).mean(1)


def in_order(answer: Any) -> Any:
    """Spins (samples, N) of a dimod sample set."""
    return answer.record.sample[:, np.argsort(list(answer.variables))]


def ring(sites: int) -> dict[tuple[int, int], float]:
    return {(site, (site + 1) % sites): -1.0 for site in range(sites)}


def dwave_samplers(rule: str, sites: int, beta: float) -> Measured:
    from dwave.samplers import SimulatedAnnealingSampler

    run = partial(
        SimulatedAnnealingSampler().sample_ising,
        {},
        ring(sites),
        num_reads=READS,
        beta_schedule_type="custom",
        beta_schedule=[beta],
        num_sweeps_per_beta=SWEEPS,
        proposal_acceptance_criteria=rule,
        seed=1,
    )
    seconds, answer = timed(run)
    return READS * sites * SWEEPS, seconds, correlations(in_order(answer))


def openjij_single_flip(sites: int, beta: float) -> Measured:
    from openjij import SASampler

    # No seed: with one, every read is the same.
    run = partial(
        SASampler().sample_ising, {}, ring(sites), num_reads=READS, schedule=[[beta, SWEEPS]], sparse=True
    )
    seconds, answer = timed(run)
    return READS * sites * SWEEPS, seconds, correlations(in_order(answer))


def openjij_polynomial(sites: int, beta: float) -> Measured:
    from openjij import SASampler

    run = partial(
        SASampler().sample_hubo,
        ring(sites),
        "SPIN",
        num_reads=READS,
        num_sweeps=SWEEPS,
        beta_min=beta,
        beta_max=beta * (1 + 1e-9),
        updater="HEAT_BATH",
        num_threads=1,
        seed=1,
    )
    seconds, answer = timed(run)
    return READS * sites * SWEEPS, seconds, correlations(in_order(answer))


def thrml(sites: int, beta: float) -> Measured:
    import jax
    from thrml import Block, SamplingSchedule, SpinNode, sample_states
    from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

    nodes = [SpinNode() for _ in range(sites)]
    edges = [(nodes[a], nodes[b]) for a, b in ring(sites)]
    weights = jax.numpy.ones(len(edges))
    model = IsingEBM(nodes, edges, jax.numpy.zeros(sites), weights, jax.numpy.array(beta))
    colours = [Block(nodes[::2]), Block(nodes[1::2])]
    program = IsingSamplingProgram(model, colours, clamped_blocks=[])
    schedule = SamplingSchedule(n_warmup=SWEEPS, n_samples=1, steps_per_sample=1)

    def one(key: Any) -> Any:
        first, then = jax.random.split(key)
        start = hinton_init(first, model, colours, ())
        return sample_states(then, program, schedule, start, [], [Block(nodes)])[0][0]

    draw = jax.jit(jax.vmap(one))
    # Compilation is not counted.
    draw(jax.random.split(jax.random.key(0), 2 * READS)).block_until_ready()
    keys = jax.random.split(jax.random.key(1), 2 * READS)
    seconds, up = timed(lambda: draw(keys).block_until_ready())
    return 2 * READS * sites * SWEEPS, seconds, correlations(2 * np.asarray(up, float) - 1)


def peapods(rule: str, sites: int, beta: float) -> Measured:
    """Means over the second half of each run: states are not given out."""
    from peapods import Ising

    # Chains as equal temperatures: models of their own would all draw the same numbers.
    model = Ising((sites,), temperatures=np.full(READS, 1 / beta))
    run = partial(model.sample, SWEEPS, sweep_mode=rule, warmup_ratio=0.5, sequential=True)
    seconds, _ = timed(run)
    return READS * sites * SWEEPS, seconds, model.get_energies()


def mcising(sites: int, beta: float) -> Measured:
    from mcising import IsingSimulation

    chains = [
        IsingSimulation(sites, 1.0, 0.0, 0.0, 0.0, seed, "metropolis", "chain") for seed in range(READS)
    ]
    seconds, _ = timed(lambda: [chain.sweep(SWEEPS, temperature=1 / beta) for chain in chains])
    return READS * sites * SWEEPS, seconds, correlations([chain.get_spins().ravel() for chain in chains])


CONTENDERS: dict[str, Callable[[int, float], Measured]] = {
    "dwave-samplers, Metropolis (default)": partial(dwave_samplers, "Metropolis"),
    "dwave-samplers, Gibbs": partial(dwave_samplers, "Gibbs"),
    "openjij, single spin flip (default)": openjij_single_flip,
    "openjij, polynomial heat bath": openjij_polynomial,
    "peapods, Metropolis (default)": partial(peapods, "metropolis"),
    "peapods, Gibbs": partial(peapods, "gibbs"),
    "mcising, Metropolis (default)": mcising,
    "thrml, two colours": thrml,
}


def main() -> None:
    """Print the lines."""
    sites, beta = int(sys.argv[1]), float(sys.argv[2])
    for name, measure in CONTENDERS.items():
        line: dict[str, Any] = {"name": name}
        try:
            line["updates"], line["seconds"], means = measure(sites, beta)
            line["means"] = [float(mean) for mean in means]
        except ImportError as error:
            line["missing"] = str(error)
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
