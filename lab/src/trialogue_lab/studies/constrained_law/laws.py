"""Laws of texts: distances between them, and of counts."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from trialogue.randomness import numpy_generator

ExactDistribution = dict[str, float]


def by_text(
    law: Mapping[tuple[int, ...], float], text: Callable[[tuple[int, ...]], str]
) -> ExactDistribution:
    """The law of the texts, from that of the completions."""
    summed: ExactDistribution = {}
    for completion, probability in law.items():
        summed[text(completion)] = summed.get(text(completion), 0.0) + probability
    return summed


def distance(first: ExactDistribution, second: ExactDistribution) -> float:
    """Total variation; what a law lacks of 1 is output that breaks the rule."""
    texts = first.keys() | second.keys()
    missing = abs(math.fsum(first.values()) - math.fsum(second.values()))
    return (math.fsum(abs(first.get(t, 0.0) - second.get(t, 0.0)) for t in texts) + missing) / 2


def sampling_error(law: ExactDistribution, number: int) -> float:
    """The total variation between `law` and `number` draws of it that is to be expected, by the normal limit."""
    return math.fsum(math.sqrt(2 * p * max(0.0, 1 - p) / (math.pi * number)) for p in law.values()) / 2


def drawn_distance(
    law: ExactDistribution, target: ExactDistribution, number: int, seed: int, rounds: int = 2000
) -> float:
    """The expected total variation between `target` and the counts of `number` draws of `law`, by simulation.

    Counts are further from the target than the law that they are drawn from. What `law` lacks of 1 breaks the rule.
    """
    texts = sorted(law.keys() | target.keys())
    p = np.array([law.get(text, 0.0) for text in texts])
    outcomes = np.append(p, max(0.0, 1.0 - p.sum()))
    expected = np.append(
        [target.get(text, 0.0) for text in texts], max(0.0, 1.0 - math.fsum(target.values()))
    )
    draw = numpy_generator(seed, "counts", number)
    counts = draw.multinomial(number, outcomes / outcomes.sum(), size=rounds) / number
    return float(np.abs(counts - expected).sum(1).mean() / 2)
