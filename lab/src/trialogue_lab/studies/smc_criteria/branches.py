"""Sequential Monte Carlo with Bellman errors, for targets that the first token decides.

The first token selects one of two branches, and the outcome depends on the branch only. All later tokens are
irrelevant. Approximate values have a Bellman error of the same size at every prefix: above zero on one branch and below
zero on the other. A Bellman error is the logarithm of the ratio between the value of a prefix and the expected value
one token later. At depth t of H, the logarithms of approximate and exact value then differ by (H - t) times the error.
The error favours the branch that the model prefers to the target. The value of complete sequences is exact.

If particles are resampled after every token, the number of particles on the first branch is a Markov chain, a
Wright-Fisher model with selection. The output distribution follows from powers of its transition matrix. The first leaf
of the value-guided walk follows from a path of conductances for each branch.
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
from trialogue_lab.studies.smc_criteria.products import random_shares

Array = NDArray[np.float64]
NONE, BY_LENGTH, CONSTANT = "none", "proportional to 1 / H", "constant"
"""Kinds of Bellman errors."""
_MOST_PARTICLES = 1 << 13


def _binomial(particles: int, shares: Array) -> Array:
    """Return probabilities (particles + 1, n) of binomial counts, one column for each of `shares` (n,)."""
    counts = np.arange(particles + 1)[:, None]
    chosen = gammaln(particles + 1) - gammaln(counts + 1) - gammaln(particles - counts + 1)
    return np.asarray(np.exp(chosen + xlogy(counts, shares) + xlog1py(particles - counts, -shares)))


def branch_share(particles: int, length: int, base: float, target: float, error: float) -> float:
    """Return the probability that an output of sequential Monte Carlo is on the first branch.

    Args:
        particles: Number of particles.
        length: Length H of a sequence.
        base: Probability of the first branch under the model.
        target: Probability of the first branch in the target.
        error: Bellman error of every incomplete prefix, with this sign on the first branch and the other sign on the
            second one.
    """
    with np.errstate(divide="ignore"):
        counts = np.arange(particles + 1)
        log_odds = np.log(counts) - np.log(particles - counts)
    tilt = math.log(target / base) - math.log((1 - target) / (1 - base)) + 2 * error * (length - 1)
    counts_after = _binomial(particles, np.array([base]))[:, 0]
    later = expit(log_odds - 2 * error)
    if length == 1:
        return float(counts_after @ expit(log_odds + tilt))
    counts_after = _binomial(particles, expit(log_odds + tilt)) @ counts_after
    step = _binomial(particles, later)
    for _ in range(length - 2):
        counts_after = step @ counts_after
    return float(counts_after @ later)


def particles_needed(length: int, base: float, target: float, error: float, tolerance: float) -> int:
    """Return a number of particles from which on the output is near the target.

    The number is found by doubling and bisection. The distance falls with the number of particles once these are enough
    to keep both branches.

    Args:
        length: Length of a sequence.
        base: Probability of the first branch under the model.
        target: Probability of the first branch in the target.
        error: Bellman error, as for `branch_share`.
        tolerance: Largest total variation that counts as near.

    Raises:
        InputError: More than 8,192 particles are needed.
    """

    def is_near(particles: int) -> bool:
        return abs(branch_share(particles, length, base, target, error) - target) <= tolerance

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


def first_leaf(length: int, target: float, error: float) -> tuple[float, float]:
    """Return the first leaf of the value-guided walk and its cost.

    Args:
        length: Length of a sequence.
        target: Probability of the first branch in the target.
        error: Bellman error, as for `branch_share`.

    Returns:
        The probability that the first complete sequence is on the first branch, and the expected number of moves until
        it is reached, without lazy steps.
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
    """Compute the numbers of particles that approximate values need, and the first leaf of the value-guided walk.

    Args:
        config: Settings of the run.
        seed: Seed of the target.

    Yields:
        One row of the kind "branch" per length and kind of Bellman errors. `needed` is the number of particles,
        `first_leaf` the total variation between the first leaf and the target, `moves` its model calls, and `particles`
        the total variation of SMC with as many model calls.
    """
    base, target = sorted(random_shares(seed, "branch", low=0.3, high=0.7), reverse=True)
    settings = [(NONE, length, 0.0) for length in config.branch_lengths]
    settings += [(BY_LENGTH, length, config.total_error / length) for length in config.branch_lengths]
    settings += [(CONSTANT, length, config.constant_error) for length in config.constant_lengths]
    for kind, length, error in settings:
        share, moves = first_leaf(length, target, error)
        as_many = max(1, round(moves / length))
        yield {
            "kind": "branch",
            "error": kind,
            "length": length,
            "needed": particles_needed(length, base, target, error, config.tolerance),
            "first_leaf": abs(share - target),
            "moves": moves,
            "particles": abs(branch_share(as_many, length, base, target, error) - target),
        }
