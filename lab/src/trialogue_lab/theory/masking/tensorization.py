"""Factor by which errors of masked predictions grow in the joint distribution (thesis, Definition 4.1.9).

It is the smallest number C_AT with KL(r || q) <= C_AT E[KL(r(. | X_{-K}, K) || q(. | X_{-K}, K))] for all
distributions r, the constant of approximate tensorization of entropy. X is a sequence from r, K its random
set of masked positions, and X_{-K} are the other tokens.
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
    """Return the smallest positive probability of masked tokens given the other tokens, p(x_K | x_{-K}, K).

    It is the constant beta of Assumption 4.1.3 for a single distribution p.

    Args:
        probabilities: Probabilities p (states,) of the sequences.
        distribution: Distribution of the set K of masked positions.
    """
    table = conditionals(probabilities, distribution)
    return float(table[table > 0].min())


def tensorization_upper_bound(probabilities: Tensor, distribution: BlockDistribution) -> float:
    """Return an upper bound on the factor by which errors of masked predictions grow in the joint distribution.

    The factor C_AT is the smallest number with KL(r || q) <= C_AT * (mean KL divergence of the predictions of
    masked tokens), for all distributions r (Definition 4.1.9). The bound compares q with the closest
    distribution of independent positions, for which C_AT is known.

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
