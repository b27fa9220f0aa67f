"""Laws of texts: distances between them, of counts, and of a draw by weight."""

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from trialogue.randomness import numpy_generator

Law = dict[str, float]


def by_text(law: Mapping[tuple[int, ...], float], text: Callable[[tuple[int, ...]], str]) -> Law:
    """The law of the texts, from that of the completions."""
    summed: Law = {}
    for completion, probability in law.items():
        summed[text(completion)] = summed.get(text(completion), 0.0) + probability
    return summed


def distance(first: Law, second: Law) -> float:
    """Total variation; what a law lacks of 1 is output that breaks the rule."""
    texts = first.keys() | second.keys()
    missing = abs(math.fsum(first.values()) - math.fsum(second.values()))
    return (math.fsum(abs(first.get(t, 0.0) - second.get(t, 0.0)) for t in texts) + missing) / 2


def sampling_error(law: Law, number: int) -> float:
    """The total variation between `law` and `number` draws of it that is to be expected, by the normal limit."""
    return math.fsum(math.sqrt(2 * p * max(0.0, 1 - p) / (math.pi * number)) for p in law.values()) / 2


def drawn_distance(law: Law, target: Law, number: int, seed: int, rounds: int = 2000) -> float:
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


def resampled_law(
    proposal: NDArray[np.float64], weights: NDArray[np.float64], number: int, rounds: int, seed: int
) -> NDArray[np.float64]:
    """The law (k,) of one draw by weight among `number` draws of `proposal` (k,), whose weights are `weights` (k,).

    Given the sum S of the others' weights, outcome x is the output with probability number q(x) E[w(x)/(w(x) + S)],
    by exchangeability: only the law of S is simulated, in `rounds` rounds.
    """
    if number == 1:
        return proposal
    draw = numpy_generator(seed, "resampling", number)
    others = draw.multinomial(number - 1, proposal / proposal.sum(), size=rounds) @ weights
    share = (weights[None, :] / (weights[None, :] + others[:, None])).mean(0)
    return number * proposal * share
