"""Tasks of a run: they compute and simulate the number of steps until all coupled spins of an Ising model point up."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.oracles import Chain
from trialogue.randomness import derive_seed
from trialogue.samplers import BlockGibbs, IndependentParallel
from trialogue_lab.analysis.clique_hits import clique_hits
from trialogue_lab.ledger import MeasuredRows, Part
from trialogue_lab.studies.ising_sampling.config import PARALLEL, Config, block_label
from trialogue_lab.theory.cliques import chains


def parts(config: Config) -> list[Part]:
    """Return the tasks (`Part`) of a run, one for each coupling between the spins of an Ising model.

    Each task computes and simulates how many steps several samplers need until all coupled spins point up.

    Args:
        config: Settings of the run.
    """
    return [
        Part(f"coupling-{place}", partial(_measure_coupling, config, coupling))
        for place, coupling in enumerate(config.couplings)
    ]


def _measure_coupling(config: Config, coupling: float, _: Path) -> MeasuredRows:
    # Assumption 4.1.5 requires that both margins are positive.
    outside = config.sites - config.clique
    yield {
        "kind": "setting",
        "coupling": coupling,
        "budget": config.budget,
        "field_margin": config.clique * config.field - outside * abs(config.field),
        "coupling_margin": coupling - config.sites * abs(config.field),
    }
    for size in (*config.block_sizes, None):
        name, chain = (block_label(size), BlockGibbs(size)) if size else (PARALLEL, IndependentParallel())
        log_matrix = (
            chains.block_chain(config.sites, config.clique, coupling, config.field, size)
            if size
            else chains.parallel_chain(config.clique, coupling, config.field)
        )
        common = {"coupling": coupling, "chain": name, "block_size": size}
        yield {"kind": "exact", **common, **measure_exactly(log_matrix, config.budget)}
        for row in simulate_chain(config, coupling, name, chain):
            yield {"kind": "simulated", **common, **row}


def measure_exactly(log_matrix: NDArray[np.float64], budget: int) -> dict[str, float]:
    """Compute the mean and the distribution of the number T of steps until all spins of a clique point up.

    A clique is a set of spins of an Ising model that are all coupled with each other. All of its spins point down at
    the start.

    Args:
        log_matrix: Log transition probabilities (states, states) of a Markov chain whose state is the number of up
            spins in the clique.
        budget: Largest number of steps.

    Returns:
        `log_expected` is the logarithm of the expectation of T. `mean` and `deviation` are the mean and the standard
        deviation of min(T, budget), and `reached` is the probability that T <= budget.
    """
    waiting = np.exp(log_matrix)[:-1, :-1]
    alive = np.zeros(len(waiting))
    alive[0] = 1.0
    first = second = 0.0
    for step in range(budget):
        first += alive.sum()
        second += (2 * step + 1) * alive.sum()
        alive = alive @ waiting
    return {
        "log_expected": float(chains.log_hitting_times(log_matrix)[0]),
        "mean": float(first),
        "deviation": math.sqrt(max(0.0, second - first**2)),
        "reached": float(chains.hitting_probability(log_matrix, budget)[0]),
    }


def simulate_chain(
    config: Config, coupling: float, name: str, chain: Chain[Any]
) -> Iterator[dict[str, float | int]]:
    """Simulate a sampler of an Ising model until all spins of a clique point up.

    A clique is a set of spins that are all coupled with each other. All spins point down at the start, and chains stop
    after a budget of steps.

    Args:
        config: Settings of the run.
        coupling: Coupling J between the spins of the clique.
        name: Name of the sampler, which also determines the random stream.
        chain: The sampler.

    Yields:
        One row per seed. `mean` and `deviation` are the mean and the standard deviation over chains of min(T, budget),
        where T is the number of steps. `reached` is the share of chains with T <= budget.
    """
    hits = clique_hits(
        chain,
        config.model(coupling),
        config.clique,
        seeds=config.seeds,
        runs=config.chains,
        budget=config.budget,
        stream=derive_seed(0, "ising-sampling", coupling, name),
    )
    for seed, steps, reached in zip(config.seeds, hits.steps.double(), hits.reached.double(), strict=True):
        yield {
            "seed": seed,
            "mean": float(steps.mean()),
            "deviation": float(steps.std()),
            "reached": float(reached.mean()),
        }
