"""What users believe they sample, and laws in closed form: of the best of n, and of a draw by weight."""

import math
from collections.abc import Mapping

import numpy as np

from trialogue.samplers.exact import ExactDistribution
from trialogue_lab.studies.decoding_laws import rules
from trialogue_lab.theory.resampling import resampled_law

Prefix = tuple[int, ...]
Probabilities = Mapping[Prefix, float]


def normalised(weights: Probabilities) -> dict[Prefix, float]:
    """`weights` over their sum: nothing, where there are none."""
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()} if total > 0 else {}


def believed_law(
    believed: str,
    free: Probabilities,
    restricted: Probabilities,
    tempered: Probabilities,
    given: Probabilities,
) -> Probabilities:
    """The law that users believe a rule samples.

    `free` is that of the model, `restricted` and `tempered` are the model's and that of the model at a temperature,
    given that the rule holds, `given` is what the decoding rule does sample: it tells what is within a cut.
    """
    if believed == rules.SHARPENED:
        return normalised({x: p ** (1 / rules.TEMPERATURE) for x, p in restricted.items()})
    if believed == rules.TEMPERED:
        return tempered
    if believed == rules.KEPT:
        return normalised({x: p for x, p in restricted.items() if given.get(x, 0.0) > 0})
    if believed in (rules.LIKELIEST, rules.LIKELIEST_OF_ALL):
        law = restricted if believed == rules.LIKELIEST else free
        # Of equally likely ones the first: as greedy decoding takes the lowest index.
        return {min(law, key=lambda x: (-law[x], x)): 1.0}
    return restricted


def best_of_law(free: Probabilities, restricted: Probabilities, number: int) -> dict[Prefix, float]:
    """The law of the first valid one among `number` draws of the model, and of the first one where none is valid."""
    mass = math.fsum(free[x] for x in restricted)
    return {
        x: p * (1 - (1 - mass) ** number) / mass if x in restricted else p * (1 - mass) ** (number - 1)
        for x, p in free.items()
    }


def weighted_law(masked: ExactDistribution, number: int) -> dict[Prefix, float]:
    """The law of one output drawn by weight among `number` of a walk each of whose outputs has one weight."""
    outputs = [x for x, p in masked.probabilities.items() if p > 0]
    proposal = np.array([masked.probabilities[x] for x in outputs])
    weights = np.array([masked.weights[x] for x in outputs]) / proposal
    return dict(zip(outputs, resampled_law(proposal, weights, number).tolist(), strict=True))
