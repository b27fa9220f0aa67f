"""Block approximate tensorization of entropy: its constant from below by witnesses, from above by a product law."""

import math

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue_lab.theory.masking.block_laws import BlockLaw, conditionals, law_of_states


def smallest_conditional(probabilities: Tensor, law: BlockLaw) -> float:
    """beta of Assumption 4.1.3 for one parameter: the smallest positive p(x_K | x_{-K}, K)."""
    table = conditionals(probabilities, law)
    return float(table[table > 0].min())


def tensorization_upper_bound(probabilities: Tensor, law: BlockLaw) -> float:
    """A number that C_AT(q) of Definition 4.1.9 is certain not to exceed, for q = `probabilities` (states,), positive.

    A product law has C_AT = 1 / min_i P(site i is masked), by Shearer's inequality (N / k for k uniformly random
    sites). As the entropies on both sides are minima over constants of integrals of non-negative functions, C_AT(q)
    is at most that times max(q / pi) / min(q / pi) for any product law pi (Holley and Stroock): here the pi of least
    ratio, by linear programming. Raises `InputError` for q with a zero, and for a block law that depends on the state.
    """
    q = law_of_states(probabilities, law.states)
    if not bool((q > 0).all()):
        raise InputError("probabilities", 0.0, "use a distribution that is positive everywhere")
    if law.adaptive:
        raise InputError("law", "adaptive", "use one that does not depend on the state")
    masked = float((law.given[0] @ law.blocks.double()).min())
    tokens = whole_sequences(law.vocab_size, law.sites)
    chosen = torch.nn.functional.one_hot(tokens, law.vocab_size).flatten(1).double().numpy()
    logs, ones = q.log().numpy(), np.ones((law.states, 1))
    # The last two numbers are the least and the largest of log q - log pi, whose distance is made small.
    rows = np.block([[-chosen, 0 * ones, -ones], [chosen, ones, 0 * ones]])
    cost = np.array([0.0] * chosen.shape[1] + [-1.0, 1.0])
    found = linprog(cost, rows, np.concatenate((-logs, logs)), bounds=(None, None))
    fitted = chosen @ found.x[:-2] if found.success else np.zeros_like(logs)
    return math.exp(float(np.ptp(logs - fitted))) / masked
