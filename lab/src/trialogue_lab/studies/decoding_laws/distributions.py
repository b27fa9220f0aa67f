"""Distributions that users of decoding methods expect, and output distributions with a formula."""

import math
from collections.abc import Mapping

import numpy as np

from trialogue.samplers.exact import ExactDistribution
from trialogue_lab.studies.decoding_laws import methods
from trialogue_lab.theory.resampling import resampled_distribution

Prefix = tuple[int, ...]
Probabilities = Mapping[Prefix, float]


def normalised(weights: Probabilities) -> dict[Prefix, float]:
    """Divide nonnegative weights of strings by their sum.

    Args:
        weights: Weight of each string.

    Returns:
        Probability of each string. It is empty if all weights are zero.
    """
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()} if total > 0 else {}


def expected_distribution(
    believed: str,
    free: Probabilities,
    restricted: Probabilities,
    tempered: Probabilities,
    output: Probabilities,
) -> Probabilities:
    """Return the distribution of outputs that users expect from a decoding method.

    Args:
        believed: Name of the distribution, one of the constants of `methods`, for example `methods.KEPT`.
        free: Probability of every string under the model.
        restricted: Probability of every valid string under the model given the constraint.
        tempered: Probability of every valid string under the model with temperature `methods.TEMPERATURE`, given the
            constraint.
        output: Output distribution of the method. It shows which strings top-p or top-k truncation can produce.

    Returns:
        The probability of every string.
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
    """Return the output distribution of best-of-n sampling under a constraint.

    The method samples `number` outputs from the model. It returns the first valid one, or the first one if none is
    valid.

    Args:
        free: Probability of every string under the model.
        restricted: Probability of every valid string under the model given the constraint.
        number: Number of sampled outputs.

    Returns:
        The probability of every string.
    """
    mass = math.fsum(free[x] for x in restricted)
    return {
        x: p * (1 - (1 - mass) ** number) / mass if x in restricted else p * (1 - mass) ** (number - 1)
        for x, p in free.items()
    }


def weighted_distribution(masked: ExactDistribution, number: int) -> dict[Prefix, float]:
    """Return the distribution of one output that is selected from several outputs of masked decoding.

    Masked decoding samples from a model and sets the probability of forbidden next tokens to zero. An output is
    selected with a probability proportional to its importance weight.

    Args:
        masked: Output distribution of masked decoding, with the importance weights of the outputs.
        number: Number of masked outputs.

    Returns:
        The probability of every string.
    """
    outputs = [x for x, p in masked.probabilities.items() if p > 0]
    proposal = np.array([masked.probabilities[x] for x in outputs])
    weights = np.array([masked.weights[x] for x in outputs]) / proposal
    return dict(zip(outputs, resampled_distribution(proposal, weights, number).tolist(), strict=True))
