"""Sequential Monte Carlo with errors in the values, for targets that depend on the first token only.

The first token selects one of two branches, and the outcome depends on the branch only. A Bellman error is
log(value of a prefix / expected value one token later). Here, all Bellman errors have the same size, with
opposite signs on the two branches.

If particles are resampled after every token, the number of particles on the first branch is a Markov chain.
The output distribution follows from powers of its transition matrix.
"""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_banded
from scipy.special import expit, gammaln, xlog1py, xlogy

from trialogue.errors import InputError
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.smc_criteria.config import Config
from trialogue_lab.studies.smc_criteria.products import sample_shares

Array = NDArray[np.float64]
NONE, BY_LENGTH, CONSTANT = "none", "proportional to 1 / H", "constant"
"""Kinds of Bellman errors."""
_MOST_PARTICLES = 1 << 13


def _compute_binomial(particles: int, shares: Array) -> Array:
    """Return binomial probabilities (particles + 1, n), with one column per entry of `shares` (n,)."""
    counts = np.arange(particles + 1)[:, None]
    chosen = gammaln(particles + 1) - gammaln(counts + 1) - gammaln(particles - counts + 1)
    return np.asarray(np.exp(chosen + xlogy(counts, shares) + xlog1py(particles - counts, -shares)))


def compute_branch_share(particles: int, length: int, base: float, target: float, error: float) -> float:
    """Return the probability that a sequence sampled by sequential Monte Carlo is on the first of two branches.

    The first token of a sequence selects the branch, on which its outcome depends.

    Args:
        particles: Number of particles.
        length: Number H of tokens of a sequence.
        base: Probability of the first branch under the model.
        target: Probability of the first branch in the target.
        error: Bellman error log(value / expected value one token later) of every incomplete prefix on the first branch.
            It has the opposite sign on the second branch.
    """
    with np.errstate(divide="ignore"):
        counts = np.arange(particles + 1)
        log_odds = np.log(counts) - np.log(particles - counts)
    tilt = math.log(target / base) - math.log((1 - target) / (1 - base)) + 2 * error * (length - 1)
    counts_after = _compute_binomial(particles, np.array([base]))[:, 0]
    later = expit(log_odds - 2 * error)
    if length == 1:
        return float(counts_after @ expit(log_odds + tilt))
    counts_after = _compute_binomial(particles, expit(log_odds + tilt)) @ counts_after
    step = _compute_binomial(particles, later)
    for _ in range(length - 2):
        counts_after = step @ counts_after
    return float(counts_after @ later)


def count_particles_needed(length: int, base: float, target: float, error: float, tolerance: float) -> int:
    """Return the number of particles that sequential Monte Carlo needs to approximate a target.

    The first token of a sequence selects one of two branches.

    Args:
        length: Number of tokens of a sequence.
        base: Probability of the first branch under the model.
        target: Probability of the first branch in the target.
        error: Bellman error log(value / expected value one token later) of every incomplete prefix on the
            first branch. It has the opposite sign on the second branch.
        tolerance: Largest total variation distance from the target.

    Raises:
        InputError: If more than 8,192 particles are needed.
    """

    def is_near(particles: int) -> bool:
        return abs(compute_branch_share(particles, length, base, target, error) - target) <= tolerance

    enough = 4 * length
    while not is_near(enough):
        enough *= 2
        if enough > _MOST_PARTICLES:
            hint = f"an error of {error:g} needs more than {_MOST_PARTICLES} particles: use shorter sequences"
            raise InputError("length", length, hint)
    while enough > 1 and is_near(enough // 2):
        enough //= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if is_near(middle) else (middle, enough)
    return enough


def compute_first_leaf(length: int, target: float, error: float) -> tuple[float, float]:
    """Compute the output and the cost of the value-guided random walk, if the outcome depends on the first token only.

    The first token of a sequence selects one of two branches. The walk moves on the tree of prefixes until it reaches a
    complete sequence, the first leaf.

    Args:
        length: Number of tokens of a sequence.
        target: Probability of the first branch in the target.
        error: Bellman error log(value / expected value one token later) of every incomplete prefix on the first branch.
            It has the opposite sign on the second branch.

    Returns:
        The probability that the first leaf is on the first branch, and the expected number of moves until it is
        reached. Lazy steps do not count as moves.
    """
    left = np.arange(length - 1, -1, -1)  # Number of tokens below an edge, from the root to the leaf.
    arms = (target * np.exp(error * left), (1 - target) * np.exp(-error * left))
    through = [1 / float((1 / arm).sum()) for arm in arms]
    # Nodes from one leaf's parent over the root to the other leaf's parent. Expected moves solve a tridiagonal system.
    edges = np.concatenate([arms[0][::-1], arms[1]])
    total = edges[:-1] + edges[1:]
    bands = np.zeros((3, len(total)))
    bands[0, 1:], bands[1], bands[2, :-1] = -edges[1:-1], total, -edges[1:-1]
    moves = solve_banded((1, 1), bands, total)
    return through[0] / sum(through), float(moves[length - 1])


def measure_branches(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Compute how many particles sequential Monte Carlo needs if the values of prefixes have errors.

    Particles are sequences that are extended in parallel and resampled by their values. The value of a prefix is the
    expected outcome of its completions. The outcome depends on the first token only, which selects one of two branches.

    Args:
        config: Settings of the run.
        seed: Seed of the target.

    Yields:
        One row of the kind "branch" per length and kind of errors.

        - `needed`: number of particles.
        - `first_leaf`: total variation distance between the first leaf of the value-guided walk and the target.
        - `moves`: number of model calls of this walk.
        - `particles`: total variation distance of sequential Monte Carlo with equally many model calls.
    """
    base, target = sorted(sample_shares(seed, "branch", low=0.3, high=0.7), reverse=True)
    settings = [(NONE, length, 0.0) for length in config.branch_lengths]
    settings += [(BY_LENGTH, length, config.total_error / length) for length in config.branch_lengths]
    settings += [(CONSTANT, length, config.constant_error) for length in config.constant_lengths]
    for kind, length, error in settings:
        share, moves = compute_first_leaf(length, target, error)
        as_many = max(1, round(moves / length))
        yield {
            "kind": "branch",
            "error": kind,
            "length": length,
            "needed": count_particles_needed(length, base, target, error, config.tolerance),
            "first_leaf": abs(share - target),
            "moves": moves,
            "particles": abs(compute_branch_share(as_many, length, base, target, error) - target),
        }
