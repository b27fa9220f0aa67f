"""When a rule shows its verdict: how the value of a prefix moves along the strings that are valid.

V*(y) is the probability that the model makes a valid string of the prefix y. Along a valid string it rises from the
probability of the rule to 1, and the mean of log V*(ya) / V*(y) over the restricted law is KL(restricted, model) of the
token a: the nats by which the rule changes the model there.
"""

import math
from typing import NamedTuple

import numpy as np

from trialogue.oracles import Autoregressive
from trialogue.samplers.exact import prefix_tree
from trialogue.samplers.exact.expected_outcomes import tree_values
from trialogue_lab.studies.decoding_laws.tasks import Task


class Shown(NamedTuple):
    """Of a task: numbers of the oracle and the rule alone, but for `unseen`, which is of masked decoding too.

    `mass` is the probability that the model is valid, `rarity` its negative logarithm, in nats. `lateness` is the mean
    place at which these nats are paid, as a share of the greatest length. `swing` is the mean over valid strings of the
    sum of |log V*(ya) / V*(y)|. `spread` is that of the standard deviation of V*(ya) over its mean, among the tokens a
    that the rule allows after y, in the proportions of the model; by arithmetic it is zero exactly where masked
    decoding has no distance, as where the first token shows the verdict. `unseen` are the nats that a mask does not
    pay: KL(restricted, masked).
    """

    mass: float
    rarity: float
    lateness: float
    swing: float
    spread: float
    unseen: float


def shown(oracle: Autoregressive, task: Task) -> Shown:
    """How the rule of `task` shows itself on `oracle`."""
    tree = prefix_tree(oracle, viable=task)
    parent = tree.parent[1:]
    conditional = np.exp(tree.log_probs[1:] - tree.log_probs[parent])
    value, size = tree_values(tree, task), len(tree.prefixes)
    allowed = np.bincount(parent, conditional, size)
    inner, mean, spread = allowed > 0, np.zeros(size), np.zeros(size)
    mean[inner] = value[inner] / allowed[inner]
    squares = np.bincount(parent, conditional * (value[1:] - mean[parent]) ** 2, size)
    lives = mean > 0
    spread[lives] = np.sqrt(squares[lives] / allowed[lives]) / mean[lives]
    # The restricted probability of each prefix, and of those whose value is not zero what the value grows by.
    restricted = np.exp(tree.log_probs) * value / value[0]
    alive = value[1:] > 0
    reached, growth = restricted[1:][alive], np.log(value[1:][alive] / value[parent[alive]])
    depth = tree.depth[1:][alive]
    rarity, swing = -math.log(value[0]), math.fsum(reached * abs(growth))
    lateness = math.fsum(reached * growth * depth) / (rarity * task.length) if rarity > 0 else 0.0
    paid = -math.fsum(restricted[inner] * np.log(allowed[inner]))
    return Shown(
        float(value[0]),
        rarity,
        lateness,
        swing,
        math.fsum(restricted[inner] * spread[inner]),
        max(0.0, rarity - paid),
    )
