"""The parts of a run: exact and simulated hitting times, a part per coupling."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trialogue.oracles import Chain
from trialogue.randomness import seed_of
from trialogue.samplers import BlockGibbs, IndependentParallel
from trialogue_lab.analysis.clique_hits import clique_hits
from trialogue_lab.ledger import Part
from trialogue_lab.studies.ising_sampling.config import PARALLEL, Config, block_label
from trialogue_lab.theory.cliques import chains


def parts(config: Config) -> list[Part]:
    """One part per coupling."""
    return [
        Part(f"coupling-{place}", partial(_measured, config, coupling))
        for place, coupling in enumerate(config.couplings)
    ]


def _measured(config: Config, coupling: float, _: Path) -> Iterator[dict[str, Any]]:
    # Assumption 4.1.5 wants both margins positive; the second is J_0.
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
        "log_expected": float(chains.log_hitting_times(log_matrix)[0]),
        "mean": float(first),
        "deviation": math.sqrt(max(0.0, second - first**2)),
        "reached": float(chains.hitting_probability(log_matrix, budget)[0]),
    }


def simulated_rows(
    config: Config, coupling: float, name: str, chain: Chain[Any]
) -> Iterator[dict[str, float | int]]:
    """One row per repetition: mean and deviation of min(T, budget) over its chains, and how many got there."""
    found = clique_hits(
        chain,
        config.model(coupling),
        config.clique,
        seeds=config.seeds,
        runs=config.chains,
        budget=config.budget,
        stream=seed_of(0, "ising-sampling", coupling, name),
    )
    for seed, steps, reached in zip(config.seeds, found.steps.double(), found.reached.double(), strict=True):
        yield {
            "seed": seed,
            "mean": float(steps.mean()),
            "deviation": float(steps.std()),
            "reached": float(reached.mean()),
        }
