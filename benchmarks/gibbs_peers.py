"""Samplers of Ising models from other packages, run by `gibbs.py` in a Python environment that has some of them.

Each line of output is a JSON object with the name of a contender. It also has the missing package, or the number of
site updates, the CPU seconds, and the mean of x_i x_(i+1) over the ring for each independent sample.

    python benchmarks/gibbs_peers.py 1000 0.5
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

# The libraries read these variables when they are imported.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import numpy as np

READS, SWEEPS = 64, 500

Measured = tuple[int, float, Any]
"""Number of site updates, CPU seconds, and the mean of x_i x_(i+1) for each independent sample."""


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    answer = run()
    return time.process_time() - began, answer


def correlations(spins: Any) -> Any:
    """Return the mean of x_i x_(i+1) over the ring for each row of spins (samples, N) with values -1 and 1."""
    spins = np.asarray(spins, float)
    return (spins * np.roll(spins, 1, 1)).mean(1)


def in_order(answer: Any) -> Any:
    """Return the spins (samples, N) of a dimod sample set."""
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

    # A seed would make all reads equal.
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
    # Exclude compilation from the measured time.
    draw(jax.random.split(jax.random.key(0), 2 * READS)).block_until_ready()
    keys = jax.random.split(jax.random.key(1), 2 * READS)
    seconds, up = timed(lambda: draw(keys).block_until_ready())
    return 2 * READS * sites * SWEEPS, seconds, correlations(2 * np.asarray(up, float) - 1)


def peapods(rule: str, sites: int, beta: float) -> Measured:
    """Measure means over the second half of each run, because the package does not return states."""
    from peapods import Ising

    # Use replicas at equal temperatures as chains, because separate models would use the same random numbers.
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
    """Measure all contenders and print one line for each."""
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
