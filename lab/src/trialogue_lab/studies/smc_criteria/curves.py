"""Rejection by a threshold and best-of-n, on enumerated tables of scores.

A verifier gives each output one of a few scores. Best-of-n samples n outputs and returns one with the highest
score. Rejection samples outputs until a score is above a threshold, which is chosen such that n outputs are
sampled on average. The accuracy is the probability that the returned output is correct.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trialogue.randomness import numpy_generator
from trialogue_lab.ledger import MeasuredRows
from trialogue_lab.studies.smc_criteria.config import Config

Array = NDArray[np.float64]
CONCAVE, ANY = "concave", "any"
"""Kinds of ROC curves."""
_WORSE = 1e-12


def make_random_curves(seed: int, count: int, levels: int, kind: str) -> tuple[Array, Array]:
    """Sample random verifiers, described by the joint distribution of score and correctness of an output.

    A verifier assigns one of several scores to each output.

    Args:
        seed: Random seed.
        count: Number of verifiers.
        levels: Number of different scores.
        kind: "concave" if an output with a higher score is always more likely to be correct, or "any" for scores in
            random order.

    Returns:
        Two arrays (count, levels), from the highest score to the lowest: the probability of each score, and the
        probability of this score together with a correct output.
    """
    generator = numpy_generator(seed, "smc-criteria", "curves", kind)
    correct, wrong = generator.dirichlet(np.ones(levels), (2, count))
    accuracy = generator.uniform(0.05, 0.95, (count, 1))
    correct, mass = accuracy * correct, accuracy * correct + (1 - accuracy) * wrong
    if kind == CONCAVE:
        order = np.argsort(-correct / mass, axis=1)
        correct, mass = (np.take_along_axis(each, order, 1) for each in (correct, mass))
    return mass, correct


def compute_best_of_n_accuracy(mass: Array, correct: Array, n: int) -> Array:
    """Return the probability (count,) that best-of-n returns a correct output.

    Best-of-n samples n outputs and returns one with the highest verifier score.

    Args:
        mass: Probabilities (count, levels) of each score, from the highest score on.
        correct: Probabilities (count, levels) of each score together with a correct output.
        n: Number of sampled outputs.
    """
    lower = np.clip(1 - np.cumsum(mass, axis=1), 0, 1)
    chosen = (lower + mass) ** n - lower**n
    return np.asarray((chosen * correct / mass).sum(1))


def compute_rejection_accuracy(mass: Array, correct: Array, n: float) -> Array:
    """Return the probability (count,) that rejection by a threshold returns a correct output.

    Outputs are sampled until a verifier score reaches the threshold. The threshold is chosen such that n outputs are
    sampled on average.

    Args:
        mass: Probabilities (count, levels) of each score, from the highest score on.
        correct: Probabilities (count, levels) of each score together with a correct output.
        n: Expected number of sampled outputs.
    """
    before = np.cumsum(mass, axis=1) - mass
    accepted = np.clip(1 / n - before, 0, mass)
    return np.asarray(n * (accepted * correct / mass).sum(1))


def measure_curves(config: Config, seed: int, _: Path) -> MeasuredRows:
    """Compare rejection by a threshold with best-of-n at equal expected numbers of outputs.

    Accuracies are computed exactly for random ROC curves.

    Args:
        config: Settings of the run.
        seed: Seed of the curves.

    Yields:
        One row per kind of curve and number of outputs. The gain of a curve is (accuracy of rejection) - (accuracy of
        best-of-n).

        - `gain`, `least_gain`: mean and minimum gain over curves.
        - `worse`: share of curves with a negative gain.
        - `distance`: mean absolute gain.
    """
    for kind in (CONCAVE, ANY):
        mass, correct = make_random_curves(seed, config.curves, config.levels, kind)
        for budget in (*config.budgets, config.large_budget):
            gain = compute_rejection_accuracy(mass, correct, budget) - compute_best_of_n_accuracy(
                mass, correct, budget
            )
            yield {
                "kind": "curves",
                "curve": kind,
                "budget": budget,
                "gain": float(gain.mean()),
                "least_gain": float(gain.min()),
                "worse": float((gain < -_WORSE).mean()),
                "distance": float(np.abs(gain).mean()),
            }
