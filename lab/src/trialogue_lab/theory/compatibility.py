"""Test whether conditional distributions of single positions belong to one joint distribution.

Conditional distributions p_i(x_i | other positions) belong to a joint distribution p if log p(x) - log
p_i(x_i | other positions) does not depend on x_i, for every position i. This is a sparse linear system for
log p, which is solved by least squares.
"""

from typing import Annotated, NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.linalg import lsqr
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.errors import InputError
from trialogue.validation import validated

_TOLERANCE = 1e-14


class Compatibility(NamedTuple):
    """Joint distribution that fits given conditional distributions of single tokens best.

    Attributes:
        log_probs: Log-probabilities (V^N,) float64 of all sequences of N tokens, in the order of `itertools.product`.
        residual: Largest absolute difference between the given conditional log-probabilities and those of the joint
            distribution. It is zero up to rounding if the conditionals are compatible.
    """

    log_probs: Tensor
    residual: float


@validated
def compatibility(log_probs: Annotated[Tensor, Reals()]) -> Compatibility:
    """Find the joint distribution of N tokens that fits given conditional distributions of single tokens.

    If no joint distribution has these conditionals, the result minimizes the squared error of the log-probabilities.

    Args:
        log_probs: Conditional log-probabilities (V, ..., V, N). The first N axes select a sequence x of N tokens. The
            last axis selects the position i in log p(x_i | other tokens).

    Returns:
        Joint distribution, and the largest remaining difference.

    Raises:
        InputError: If the shape is wrong, conditionals are not normalized, or a probability is zero.
    """
    table = log_probs.double()
    sites = table.ndim - 1
    if sites < 1 or table.shape != table.shape[:1] * sites + (sites,):
        hint = "give N axes of V values each, then one of the N sites"
        raise InputError("log_probs", tuple(table.shape), hint)
    vocab = table.shape[0]
    off = max(float(table[..., site].logsumexp(site).abs().max()) for site in range(sites))
    if off > 1e-6:
        hint = "the log of a sum of probabilities has this value instead of 0: normalize the conditionals"
        raise InputError("log_probs", off, hint)
    states, rests = vocab**sites, vocab ** (sites - 1)
    number = np.arange(states).reshape((vocab,) * sites)
    rest = np.arange(rests).reshape((vocab,) * (sites - 1))
    places = np.stack([np.expand_dims(rest, site).repeat(vocab, site).ravel() for site in range(sites)])
    marginals = states + np.arange(sites)[:, None] * rests + places
    equations = np.arange(sites * states)
    # The equations are log p(x) - log m_i(rest) = log p_i(x_i | rest), for one site after another.
    columns = np.concatenate((np.tile(number.ravel(), sites), marginals.ravel()))
    signs = np.repeat([1.0, -1.0], sites * states)
    shape = (sites * states, states + sites * rests)
    system = coo_array((signs, (np.tile(equations, 2), columns)), shape).tocsr()
    right = table.movedim(-1, 0).reshape(-1).numpy()
    solution = lsqr(system, right, atol=_TOLERANCE, btol=_TOLERANCE, iter_lim=100 * shape[1])[0]
    joint = torch.from_numpy(solution[:states]).log_softmax(0)
    grid = joint.view((vocab,) * sites)
    found = torch.stack([grid.log_softmax(site) for site in range(sites)], -1)
    return Compatibility(joint, float((found - table).abs().max()))
