"""Output distributions of decoding methods in closed form, and the distributions that their users expect."""

import math
from collections.abc import Mapping

import numpy as np

from trialogue.samplers.exact import ExactDistribution
from trialogue_lab.studies.decoding_laws import methods
from trialogue_lab.theory.resampling import resampled_distribution

Prefix = tuple[int, ...]
Probabilities = Mapping[Prefix, float]


def normalize(weights: Probabilities) -> dict[Prefix, float]:
    """Normalize weights to probabilities.

    Args:
        weights: Nonnegative weight of each string.

    Returns:
        Probability of each string. It is empty if all weights are zero.
    """
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()} if total > 0 else {}


def select_expected_distribution(
    believed: str,
    free: Probabilities,
    restricted: Probabilities,
    tempered: Probabilities,
    output: Probabilities,
) -> Probabilities:
    """Return the distribution that users of a decoding method expect it to sample from.

    For example, users of masked decoding expect the model's distribution given the constraint.

    Args:
        believed: Name of the expected distribution, one of the constants of `methods`, for example
            `methods.KEPT`.
        free: Probability of every string under the model.
        restricted: Probability of every valid string under the model given the constraint.
        tempered: The same as `restricted`, with temperature `methods.TEMPERATURE`.
        output: Output distribution of the method. Its strings are those that remain after top-p or top-k
            truncation.

    Returns:
        Probability of every string.
    """
    if believed == methods.SHARPENED:
        return normalize({x: p ** (1 / methods.TEMPERATURE) for x, p in restricted.items()})
    if believed == methods.TEMPERED:
        return tempered
    if believed == methods.KEPT:
        return normalize({x: p for x, p in restricted.items() if output.get(x, 0.0) > 0})
    if believed in (methods.LIKELIEST, methods.LIKELIEST_OF_ALL):
        candidates = restricted if believed == methods.LIKELIEST else free
        # Ties go to the first string, as greedy decoding takes the lowest token.
        return {min(candidates, key=lambda x: (-candidates[x], x)): 1.0}
    return restricted


def compute_best_of_distribution(
    free: Probabilities, restricted: Probabilities, number: int
) -> dict[Prefix, float]:
    """Return the output distribution of best-of-n sampling under a constraint.

    The method samples n outputs from the model. It returns the first valid output, or the first output if none is
    valid.

    Args:
        free: Probability of every string under the model.
        restricted: Probability of every valid string under the model given the constraint.
        number: Number n of sampled outputs.

    Returns:
        Probability of every string.
    """
    mass = math.fsum(free[x] for x in restricted)
    return {
        x: p * (1 - (1 - mass) ** number) / mass if x in restricted else p * (1 - mass) ** (number - 1)
        for x, p in free.items()
    }


def compute_weighted_distribution(masked: ExactDistribution, number: int) -> dict[Prefix, float]:
    """Return the distribution of one output that is selected from several outputs of masked decoding.

    Masked decoding samples from a model and sets the probability of forbidden next tokens to zero. An output is
    selected with a probability proportional to its importance weight.

    Args:
        masked: Output distribution of masked decoding, with the importance weights of the outputs.
        number: Number of masked outputs.

    Returns:
        Probability of every string.
    """
    outputs = [x for x, p in masked.probabilities.items() if p > 0]
    proposal = np.array([masked.probabilities[x] for x in outputs])
    weights = np.array([masked.weights[x] for x in outputs]) / proposal
    return dict(zip(outputs, resampled_distribution(proposal, weights, number).tolist(), strict=True))
