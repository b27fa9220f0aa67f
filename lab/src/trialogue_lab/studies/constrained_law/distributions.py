"""Probability distributions over texts, and distances between them and sampled texts."""

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from trialogue.randomness import numpy_generator
from trialogue.samplers.exact import total_variation

Distribution = dict[str, float]

distance: Callable[[Distribution, Distribution], float] = cast(Any, total_variation)
"""Total variation distance of two distributions over texts. Missing probability belongs to an invalid text."""


def sum_by_text(
    completions: Mapping[tuple[int, ...], float], text: Callable[[tuple[int, ...]], str]
) -> Distribution:
    """Sum the probabilities of all token sequences that decode to the same text.

    Args:
        completions: Probability of each token sequence.
        text: Function from token ids to text.

    Returns:
        Probability of each text.
    """
    summed: Distribution = {}
    for completion, probability in completions.items():
        summed[text(completion)] = summed.get(text(completion), 0.0) + probability
    return summed


def estimate_sampling_error(distribution: Distribution, number: int) -> float:
    """Estimate the expected total variation distance between a distribution and the frequencies of its samples.

        error = (1/2) * sum over texts of sqrt(2 p (1 - p) / (pi n))

    This assumes that the frequency of each text is normally distributed.

    Args:
        distribution: Probability p of each text.
        number: Number of samples n.
    """
    variances = (2 * p * max(0.0, 1 - p) / (math.pi * number) for p in distribution.values())
    return math.fsum(map(math.sqrt, variances)) / 2


def simulate_sample_distance(
    distribution: Distribution, target: Distribution, number: int, seed: int, rounds: int = 2000
) -> float:
    """Simulate the expected total variation distance between a target and the frequencies of sampled texts.

    Sampling noise makes it larger than the distance between both distributions. If probabilities sum to less than 1,
    the rest is the probability of an invalid text.

    Args:
        distribution: Probability of each text under the distribution that is sampled.
        target: Probability of each text under the target.
        number: Number of samples.
        seed: Seed of the simulation.
        rounds: Number of simulated sets of samples (default: 2000).

    Returns:
        Mean distance over the simulated sets.
    """
    texts = sorted(distribution.keys() | target.keys())
    outcomes, expected = (
        np.array([*(each.get(text, 0.0) for text in texts), max(0.0, 1.0 - math.fsum(each.values()))])
        for each in (distribution, target)
    )
    random = numpy_generator(seed, "counts", number)
    shares = random.multinomial(number, outcomes / outcomes.sum(), size=rounds) / number
    return float(np.abs(shares - expected).sum(1).mean() / 2)
