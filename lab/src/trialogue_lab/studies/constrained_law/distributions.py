"""Distributions of texts, and distances of sampled texts from them."""

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from trialogue.randomness import numpy_generator
from trialogue.samplers.exact import total_variation

Distribution = dict[str, float]

distance: Callable[[Distribution, Distribution], float] = cast(Any, total_variation)
"""Total variation of two distributions of texts. Missing mass is an outcome of its own, the invalid texts."""


def by_text(
    completions: Mapping[tuple[int, ...], float], text: Callable[[tuple[int, ...]], str]
) -> Distribution:
    """Return the distribution of the texts, given that of the completions."""
    summed: Distribution = {}
    for completion, probability in completions.items():
        summed[text(completion)] = summed.get(text(completion), 0.0) + probability
    return summed


def sampling_error(distribution: Distribution, number: int) -> float:
    """Return the expected total variation between a distribution and `number` samples of it, in the normal limit."""
    variances = (2 * p * max(0.0, 1 - p) / (math.pi * number) for p in distribution.values())
    return math.fsum(map(math.sqrt, variances)) / 2


def drawn_distance(
    distribution: Distribution, target: Distribution, number: int, seed: int, rounds: int = 2000
) -> float:
    """Return the expected total variation between `target` and `number` samples of a distribution, by simulation.

    Samples are further from the target than the distribution itself. Mass that a distribution lacks is an outcome of
    its own, the texts that violate the constraint.
    """
    texts = sorted(distribution.keys() | target.keys())
    outcomes, expected = (
        np.array([*(each.get(text, 0.0) for text in texts), max(0.0, 1.0 - math.fsum(each.values()))])
        for each in (distribution, target)
    )
    random = numpy_generator(seed, "counts", number)
    shares = random.multinomial(number, outcomes / outcomes.sum(), size=rounds) / number
    return float(np.abs(shares - expected).sum(1).mean() / 2)
