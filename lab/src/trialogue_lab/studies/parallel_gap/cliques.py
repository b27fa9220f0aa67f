"""Measurements on Ising models with a clique of coupled spins: exact probabilities, and simulations.

The clique has two modes: all spins up and all spins down. Exact probabilities come from the Markov chain of the number
of up spins in the clique.
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import torch

from trialogue.data import Ising
from trialogue.oracles import Chain
from trialogue.randomness import derive_seed
from trialogue.samplers import BlockGibbs, IndependentParallel
from trialogue_lab.analysis.clique_hits import clique_hits
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.parallel_gap.config import GIBBS, PARALLEL, CorollaryInstance
from trialogue_lab.theory.cliques import bounds, chains

STATED, CORRECTED = "as printed", "corrected"
SIMULATED_SITES = 1000
"""Maximum number of spins of a simulated model."""
SIMULATED_STEPS = 1000
"""Maximum number of steps of a simulated run."""
NAMED = (
    (5, 3, 3, 0.5, 0.1),
    (5, 3, 4, 0.5, 0.1),
    (6, 4, 5, 0.2, 0.05),
    (6, 6, 6, 0.01, 0.2),
    (8, 8, 8, 0.001, 1e-4),  # This one violates equation 4.49 as printed.
)
"""Spins, spins of the clique, k, coupling excess J_0 and field per clique spin of examples of Proposition 4.1.4."""
OUTSIDE = 0.01
"""Field of each spin outside the clique, in `NAMED` and on the grid of `measure_hitting`."""
DELTAS = (0.5, 0.1)


def measure_one_step(instances: Sequence[CorollaryInstance]) -> MeasuredRows:
    """Compute the exact probabilities that one joint step succeeds and that many independent updates fail.

    To succeed is to turn all spins of a clique (set of coupled spins) of an Ising model up. A step of k-Gibbs resamples
    k random spins jointly. It is compared with M independent updates of all spins (Corollary 4.1.1).

    Args:
        instances: Instances of the corollary.

    Yields:
        One row per instance. `arrives` is the probability that one step of k-Gibbs succeeds, and `promised` its lower
        bound. `stuck` is the probability that M independent updates fail, and `both` is `arrives` * `stuck`.
    """
    for one in instances:
        theory = one.corollary
        blocks, parallel = one.log_matrices
        arrives = float(np.exp(blocks[: one.start + 1, -1]).min())
        leaves = float(chains.hitting_probability(parallel, one.steps)[: one.start + 1].max())
        yield {
            "kind": "one step",
            "instance": one.label,
            "delta": one.delta,
            "clique": one.clique,
            "steps": one.steps,
            "block_size": one.block_size,
            "arrives": arrives,
            "promised": theory.hitting_rate,
            "stuck": 1 - leaves,
            "both": arrives * (1 - leaves),
            "stuck_exponent": theory.stuck_exponent,
            "stuck_exponent_needed": math.log(4 * one.steps / one.delta),
            "log_steps": float(chains.log_hitting_times(parallel)[one.start]),
        }


def _make_hitting_example(
    sites: int, clique: int, size: int, excess: float, field: float
) -> tuple[Ising, chains.Array, bounds.CliqueAssumption, dict[float, bounds.HittingBound]]:
    """Return an Ising model with a clique of coupled spins, the sampler k-Gibbs on it, and bounds on its speed.

    k-Gibbs resamples k random spins jointly in each step. Proposition 4.1.4 gives the bounds.

    Returns:
        The model, the log transition matrix of k-Gibbs, the parameters of the clique, and one bound per delta.
    """
    model, coupling = _make_clique_model(sites, clique, excess, field, OUTSIDE)
    assumed = bounds.clique_assumption(model)
    least = assumed.excess, assumed.clique_field
    by_delta = {delta: bounds.hitting_bound(sites, clique, size, *least, delta) for delta in DELTAS}
    return model, chains.block_chain(sites, clique, coupling, field, size), assumed, by_delta


def measure_hitting() -> MeasuredRows:
    """Compute the probability that k-Gibbs turns all coupled spins of an Ising model up (Proposition 4.1.4).

    The coupled spins are called a clique. One step of k-Gibbs resamples k random spins jointly. The initial state is
    the least favorable one.

    Yields:
        One row per Ising model, number k and failure probability delta. `rate` is the exact probability for
        one step, and `bound` its lower bound. `reached` is the exact probability within `steps` steps, which
        the proposition bounds by 1 - delta.
    """
    sizes = ((6, 4), (8, 5), (10, 6), (12, 8))
    grid = [
        (sites, clique, size, excess, field)
        for (sites, clique), excess, field in product(sizes, (0.1, 0.5, 2.0), (0.01, 0.1))
        for size in range(clique, sites + 1)
    ]
    for sites, clique, size, excess, field in (*NAMED, *grid):
        _, matrix, assumed, by_delta = _make_hitting_example(sites, clique, size, excess, field)
        covered = math.comb(sites - clique, size - clique) / math.comb(sites, size)
        top = math.exp(2 * (assumed.excess + assumed.clique_field))
        for delta, bound in by_delta.items():
            yield {
                "kind": "hitting",
                "sites": sites,
                "clique": clique,
                "block_size": size,
                "excess": excess,
                "field": field,
                "delta": delta,
                "rate": float(np.exp(matrix[:, -1]).min()),
                "bound": bound.rate,
                "bound_body": covered * top / (top + math.exp(2 * assumed.excess + 2 * clique - 2)),
                "bound_proof": covered * top / (top + math.exp(2 * assumed.excess) + 2 * clique - 2),
                "steps": bound.steps,
                "reached": float(chains.hitting_probability(matrix, bound.steps).min()),
            }


def measure_stuck() -> MeasuredRows:
    """Compute the probability that independent parallel updates keep most coupled spins of an Ising model down.

    All spins are resampled at once, independently of each other. The coupled spins are called a clique. "Most spins
    down" means that the sum of the clique's spins (+1 or -1) is at most -2 (Proposition 4.1.5).

    Yields:
        One row per Ising model and failure probability delta. `stuck` is the probability for `steps` steps. The first
        rows satisfy the corrected assumptions of the proposition, and the last ones only the published assumptions.
    """
    for clique, excess, delta in product((10, 20, 40), (1.0, 2.0, 4.0), DELTAS):
        bound = bounds.stuck_bound(clique, excess, delta)
        yield {
            "assumption": CORRECTED,
            **_measure_stuck_example(clique, excess, 0.01, delta, bound.exponent, bound.steps),
        }
    for excess, delta in ((1e-4, 0.74), (1e-3, 0.74), (5e-3, 0.745)):
        exponent = (math.tanh(excess) - 1) ** 2
        steps = math.floor(delta / 2 * math.exp(exponent))
        yield {"assumption": STATED, **_measure_stuck_example(2, excess, 1e-6, delta, exponent, steps)}


def _measure_stuck_example(
    clique: int, excess: float, field: float, delta: float, exponent: float, steps: int
) -> dict[str, Any]:
    matrix = chains.parallel_chain(clique, excess + clique * field, field)
    stuck = 1 - float(chains.escape_probability(matrix, clique // 2 - 1, steps).max())
    setting = {"kind": "stuck", "clique": clique, "excess": excess, "delta": delta}
    return setting | {"stuck_exponent": exponent, "steps": steps, "stuck": stuck}


def measure_growth() -> MeasuredRows:
    """Compute the expected number of steps until all coupled spins of an Ising model point up, for three samplers.

    The samplers resample all coupled spins (the clique) jointly, one spin, or all spins independently. Couplings and
    fields are the smallest that the assumptions of Corollary 4.1.1 allow for a failure probability of 0.1.

    Yields:
        One row per clique size, with the logarithm of the expected number of steps for each sampler.
    """
    for clique in (4, 6, 8, 12, 16, 24, 32, 44, 60, 75):
        least = bounds.smallest_parameters(clique, delta=0.1, steps=1)
        coupling, field = least.excess + least.clique_field, least.clique_field / clique
        start = clique // 2 - 1
        matrices = {
            "gibbs": (chains.block_chain(clique, clique, coupling, field, clique), 0),
            "single": (chains.block_chain(clique, clique, coupling, field, 1), start),
            "parallel": (chains.parallel_chain(clique, coupling, field), start),
        }
        steps = {
            f"log_steps_{name}": float(chains.log_hitting_times(log)[up])
            for name, (log, up) in matrices.items()
        }
        yield {"kind": "growth", "clique": clique, **steps}


def simulate_corollary(
    instances: Sequence[CorollaryInstance], runs: int, seeds: Sequence[int]
) -> MeasuredRows:
    """Simulate one joint step and many independent parallel steps on Ising models (Corollary 4.1.1).

    k-Gibbs resamples k random spins of an Ising model jointly. Independent parallel updates resample all spins
    independently. The clique is a set of coupled spins.

    Args:
        instances: Instances of the corollary. Instances with more than 1,000 spins or steps are skipped.
        runs: Number of runs per seed.
        seeds: Seeds of the simulations.

    Yields:
        One row per instance, sampler and seed. `reached` is the share of runs that turn all spins of the clique up, and
        `exact` is its exact probability.
    """
    for one in instances:
        if one.sites > SIMULATED_SITES or one.steps > SIMULATED_STEPS:
            continue
        blocks, parallel = one.log_matrices
        model, start = (
            _make_clique_model(one.sites, one.clique, one.least.excess, one.field, 0.0)[0],
            one.start,
        )
        leaves = float(chains.hitting_probability(parallel, one.steps)[start])
        for name, chain, budget, exact in (
            (GIBBS, BlockGibbs(one.block_size), 1, float(np.exp(blocks[start, -1]))),
            (PARALLEL, IndependentParallel(), one.steps, leaves),
        ):
            common = {"instance": one.label, "chain": name, "delta": one.delta, "exact": exact}
            for row in _simulate_shares(
                chain, model, one.clique, budget, one.label, seeds=seeds, runs=runs, up=start
            ):
                yield {"kind": "simulated", **common, **row}


def simulate_hitting(runs: int, seeds: Sequence[int]) -> MeasuredRows:
    """Simulate the sampler k-Gibbs on four small Ising models with a clique of coupled spins.

    A step of k-Gibbs resamples k random spins jointly. By Proposition 4.1.4, T steps turn all spins of the clique up
    with probability at least 1 - delta.

    Args:
        runs: Number of runs per seed.
        seeds: Seeds of the simulations.

    Yields:
        One row per model, failure probability delta and seed. `reached` is the share of runs that turn all spins of the
        clique up within T steps, and `exact` is its exact probability.
    """
    for sites, clique, size, excess, field in NAMED[:4]:
        model, matrix, _, by_delta = _make_hitting_example(sites, clique, size, excess, field)
        for delta, bound in by_delta.items():
            budget = bound.steps
            label = f"N = {sites}, |C| = {clique}, k = {size}, T = {budget}"
            exact = float(chains.hitting_probability(matrix, budget)[0])
            for row in _simulate_shares(
                BlockGibbs(size), model, clique, budget, label, seeds=seeds, runs=runs
            ):
                yield {"kind": "simulated hitting", "instance": label, "delta": delta, **row, "exact": exact}


def _make_clique_model(
    sites: int, clique: int, excess: float, field: float, outside: float
) -> tuple[Ising, float]:
    """Return an Ising model with a clique of coupled spins, and the coupling of the clique.

    The coupling is `excess` (J_0 in the thesis) plus the sum of all fields.
    """
    fields = torch.full((sites,), outside, dtype=torch.float64)
    fields[:clique] = field
    coupling = excess + clique * field + (sites - clique) * outside
    return Ising.clique(sites, clique, coupling, fields), coupling


def _simulate_shares(
    chain: Chain[Any], model: Ising, clique: int, budget: int, label: str, **runs: Any
) -> MeasuredRows:
    """Simulate a sampler of an Ising model, and yield the share of runs that turn all coupled spins up, by seed."""
    stream = derive_seed(0, "parallel-gap", label, type(chain).__name__)
    reached = clique_hits(chain, model, clique, budget=budget, stream=stream, **runs).reached
    for seed, share in zip(runs["seeds"], reached.double().mean(1).tolist(), strict=True):
        yield {"seed": seed, "reached": share}
