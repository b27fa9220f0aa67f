"""Upper bound on the constant of block approximate tensorization of entropy."""

import math

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue_lab.theory.masking.block_laws import (
    BlockDistribution,
    checked_state_distribution,
    conditionals,
)


def smallest_conditional(probabilities: Tensor, distribution: BlockDistribution) -> float:
    """Return the smallest positive p(x_K | x_{-K}, K), which is beta of Assumption 4.1.3 for one parameter."""
    table = conditionals(probabilities, distribution)
    return float(table[table > 0].min())


def tensorization_upper_bound(probabilities: Tensor, distribution: BlockDistribution) -> float:
    """Return an upper bound on C_AT(q) of Definition 4.1.9.

    A product distribution has C_AT = 1 / min_i P(site i is masked) by Shearer's inequality, which is N / k
    for k uniformly chosen sites. C_AT(q) is at most this value times max(q / pi) / min(q / pi) for any
    product distribution pi (Holley and Stroock). Linear programming finds the pi with the smallest ratio.

    Args:
        probabilities: Positive distribution q (states,).
        distribution: Weighted distribution of the block.

    Raises:
        InputError: If q has a zero or the block distribution depends on the state.
    """
    q = checked_state_distribution(probabilities, distribution.states)
    if not bool((q > 0).all()):
        raise InputError("probabilities", 0.0, "use a distribution that is positive everywhere")
    if distribution.adaptive:
        raise InputError("distribution", "adaptive", "use one that does not depend on the state")
    masked = float((distribution.given[0] @ distribution.blocks.double()).min())
    tokens = whole_sequences(distribution.vocab_size, distribution.sites)
    chosen = torch.nn.functional.one_hot(tokens, distribution.vocab_size).flatten(1).double().numpy()
    logs, ones = q.log().numpy(), np.ones((distribution.states, 1))
    # The last two numbers are the least and the largest of log q - log pi, whose distance is made small.
    rows = np.block([[-chosen, 0 * ones, -ones], [chosen, ones, 0 * ones]])
    cost = np.array([0.0] * chosen.shape[1] + [-1.0, 1.0])
    found = linprog(cost, rows, np.concatenate((-logs, logs)), bounds=(None, None))
    fitted = chosen @ found.x[:-2] if found.success else np.zeros_like(logs)
    return math.exp(float(np.ptp(logs - fitted))) / masked
