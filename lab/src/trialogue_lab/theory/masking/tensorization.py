"""Factor by which errors of masked predictions grow in the joint distribution (thesis, Definition 4.1.9).

It is the constant C_AT(q) of approximate tensorization of entropy: the smallest number with KL(r || q) <= C_AT(q)
E[KL(r(. | X_{-K}, K) || q(. | X_{-K}, K))] for all distributions r. The expectation is over a sequence X from r and its
random set K of masked positions, and X_{-K} are the other tokens.
"""

import math

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue_lab.theory.masking.block_laws import (
    BlockDistribution,
    check_state_distribution,
    conditionals,
)


def smallest_conditional(probabilities: Tensor, distribution: BlockDistribution) -> float:
    """Return the smallest positive probability of masked tokens given the other tokens.

    The conditional probability is p(x_K | x_{-K}, K). Here x is a sequence, K a set of masked positions, x_K the masked
    tokens, and x_{-K} all others. The result is the constant beta of Assumption 4.1.3 for a single distribution p.

    Args:
        probabilities: Probabilities p (states,) of the sequences.
        distribution: Distribution of K.
    """
    table = conditionals(probabilities, distribution)
    return float(table[table > 0].min())


def tensorization_upper_bound(probabilities: Tensor, distribution: BlockDistribution) -> float:
    """Return an upper bound on the factor by which errors of masked predictions grow in the joint distribution.

    The factor C_AT(q) is the smallest number with KL(r || q) <= C_AT(q) E[KL of the predictions of masked tokens], for
    all distributions r (Definition 4.1.9). A distribution pi of independent positions has C_AT = 1 / min_i P(position i
    is masked) by Shearer's inequality. C_AT(q) is at most this value times max(q / pi) / min(q / pi) (Holley and
    Stroock). The function finds the pi with the smallest ratio by linear programming.

    Args:
        probabilities: Positive distribution q (states,) of the sequences.
        distribution: Distribution of the set of masked positions, which must not depend on the sequence.

    Raises:
        InputError: If q has a zero or the mask distribution depends on the sequence.
    """
    q = check_state_distribution(probabilities, distribution.states)
    if not bool((q > 0).all()):
        raise InputError("probabilities", 0.0, "use a distribution that is positive everywhere")
    if distribution.adaptive:
        raise InputError("distribution", "adaptive", "use one that does not depend on the state")
    masked = float((distribution.given[0] @ distribution.blocks.double()).min())
    tokens = enumerate_sequences(distribution.vocab_size, distribution.sites)
    chosen = torch.nn.functional.one_hot(tokens, distribution.vocab_size).flatten(1).double().numpy()
    logs, ones = q.log().numpy(), np.ones((distribution.states, 1))
    # The last two variables bound log q - log pi from below and above. Their difference is minimized.
    rows = np.block([[-chosen, 0 * ones, -ones], [chosen, ones, 0 * ones]])
    cost = np.array([0.0] * chosen.shape[1] + [-1.0, 1.0])
    found = linprog(cost, rows, np.concatenate((-logs, logs)), bounds=(None, None))
    fitted = chosen @ found.x[:-2] if found.success else np.zeros_like(logs)
    return math.exp(float(np.ptp(logs - fitted))) / masked
