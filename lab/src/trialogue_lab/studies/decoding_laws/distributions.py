"""Distributions that users expect, and output distributions in closed form."""

import math
from collections.abc import Mapping

import numpy as np

from trialogue.samplers.exact import ExactDistribution
from trialogue_lab.studies.decoding_laws import methods
from trialogue_lab.theory.resampling import resampled_distribution

Prefix = tuple[int, ...]
Probabilities = Mapping[Prefix, float]


def normalised(weights: Probabilities) -> dict[Prefix, float]:
    """Return `weights` divided by their sum, or an empty distribution if the sum is zero."""
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()} if total > 0 else {}


def expected_distribution(
    believed: str,
    free: Probabilities,
    restricted: Probabilities,
    tempered: Probabilities,
    output: Probabilities,
) -> Probabilities:
    """Return the distribution that users expect from a decoding method.

    Args:
        believed: Name of the distribution, such as `methods.KEPT`.
        free: Distribution of the model.
        restricted: Distribution of the model conditioned on the constraint.
        tempered: Distribution of the model at a temperature, conditioned on the constraint.
        output: Distribution of the method's output, whose support defines the strings within a truncation.
    """
    if believed == methods.SHARPENED:
        return normalised({x: p ** (1 / methods.TEMPERATURE) for x, p in restricted.items()})
    if believed == methods.TEMPERED:
        return tempered
    if believed == methods.KEPT:
        return normalised({x: p for x, p in restricted.items() if output.get(x, 0.0) > 0})
    if believed in (methods.LIKELIEST, methods.LIKELIEST_OF_ALL):
        candidates = restricted if believed == methods.LIKELIEST else free
        # Ties go to the first string, as greedy decoding takes the lowest token.
        return {min(candidates, key=lambda x: (-candidates[x], x)): 1.0}
    return restricted


def best_of_distribution(free: Probabilities, restricted: Probabilities, number: int) -> dict[Prefix, float]:
    """Return the distribution of the first valid output among `number`, or of the first if none is valid."""
    mass = math.fsum(free[x] for x in restricted)
    return {
        x: p * (1 - (1 - mass) ** number) / mass if x in restricted else p * (1 - mass) ** (number - 1)
        for x, p in free.items()
    }


def weighted_distribution(masked: ExactDistribution, number: int) -> dict[Prefix, float]:
    """Return the distribution of one output drawn by weight among `number` outputs of masked decoding."""
    outputs = [x for x, p in masked.probabilities.items() if p > 0]
    proposal = np.array([masked.probabilities[x] for x in outputs])
    weights = np.array([masked.weights[x] for x in outputs]) / proposal
    return dict(zip(outputs, resampled_distribution(proposal, weights, number).tolist(), strict=True))
