"""Measures of how difficult a constraint is for a language model.

The value V*(y) is the probability that the model continues the prefix y to a valid string. Along a valid string, it
increases from the probability of a valid output to 1.
"""

import math
from typing import NamedTuple

import numpy as np

from trialogue.oracles import Autoregressive
from trialogue.samplers.exact import prefix_tree
from trialogue.samplers.exact.expected_outcomes import tree_values
from trialogue_lab.studies.decoding_laws.tasks import ConstraintTask


class Difficulty(NamedTuple):
    """Measures of how difficult a constraint is for a language model.

    The value V(y) of a prefix y is the probability that the model continues it to a valid string. For a
    prefix y and its next token a, let r = V(ya) / V(y). E is the mean over valid strings, weighted by their
    probability.

    Attributes:
        mass: Probability that the model's output is valid.
        rarity: -log(mass) in nats.
        lateness: E[sum over positions t of t log(r)] / (rarity * maximum length). Near 1 if only the last
            token decides whether a string is valid.
        swing: E[sum over positions of |log(r)|].
        spread: E[sum over positions of std(V(ya)) / mean(V(ya))], where a is sampled from the model among the
            allowed tokens. Zero exactly if masked decoding samples from the model given the constraint.
        unseen: Kullback-Leibler divergence in nats from the model given the constraint to masked decoding,
            which sets the probability of forbidden next tokens to zero.
    """

    mass: float
    rarity: float
    lateness: float
    swing: float
    spread: float
    unseen: float


def compute_difficulty(oracle: Autoregressive, task: ConstraintTask) -> Difficulty:
    """Compute how difficult a constraint is for a language model, by enumeration of all strings.

    Args:
        oracle: The language model.
        task: The constraint and the maximum length.

    Returns:
        Measures of the difficulty. If all outputs of the model are valid, `mass` is 1 and the others are 0.
    """
    tree = prefix_tree(oracle, viable=task)
    parent = tree.parent[1:]
    conditional = np.exp(tree.log_probs[1:] - tree.log_probs[parent])
    value, size = tree_values(tree, task), len(tree.prefixes)
    allowed = np.bincount(parent, conditional, size)
    inner, mean, spread = allowed > 0, np.zeros(size), np.zeros(size)
    mean[inner] = value[inner] / allowed[inner]
    squares = np.bincount(parent, conditional * (value[1:] - mean[parent]) ** 2, size)
    positive = mean > 0
    spread[positive] = np.sqrt(squares[positive] / allowed[positive]) / mean[positive]
    restricted = np.exp(tree.log_probs) * value / value[0]
    reachable = value[1:] > 0
    probability = restricted[1:][reachable]
    growth = np.log(value[1:][reachable] / value[parent[reachable]])
    depth = tree.depth[1:][reachable]
    rarity = -math.log(value[0])
    seen = -math.fsum(restricted[inner] * np.log(allowed[inner]))
    return Difficulty(
        mass=float(value[0]),
        rarity=rarity,
        lateness=math.fsum(probability * growth * depth) / (rarity * task.length) if rarity > 0 else 0.0,
        swing=math.fsum(probability * abs(growth)),
        spread=math.fsum(restricted[inner] * spread[inner]),
        unseen=max(0.0, rarity - seen),
    )
