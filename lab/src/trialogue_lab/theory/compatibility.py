"""Whether conditionals of single sites belong to one joint law, and which.

Laws p_i(x_i | rest) of all sites i are those of a joint law p if p(x) = p_i(x_i | rest) m_i(rest) for some marginals
m_i: section A.3 of the document on the distributional simplicity bias, whose example of two variables asks for numbers
tau, eta with tau_i B_ij = eta_j A_ij. In logarithms this is a linear system, sparse and solved by least squares.
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
    """The joint law nearest to given conditionals, and how near it is."""

    log_probs: Tensor
    """(V^N,) float64: log p of the sequences in the order of `itertools.product`"""
    residual: float
    """the largest difference of log p_i(x_i | rest) of the law and as given; zero to rounding if compatible"""


@validated
def compatibility(log_probs: Annotated[Tensor, Reals()]) -> Compatibility:
    """The joint law of the conditionals `log_probs` (V, ..., V, N), entry (x, i) being log p_i(x_i | rest) at x.

    Where they are incompatible it is the law of least squares in log p up to marginals of its own for every site: one
    law among many, whose residual then says so. Raises `InputError` for another shape, laws that are not normalised,
    and for probabilities of zero: then the sequences that can be are not connected by changes of single sites.
    """
    table = log_probs.double()
    sites = table.ndim - 1
    if sites < 1 or table.shape != table.shape[:1] * sites + (sites,):
        hint = "give N axes of V values each, then one of the N sites"
        raise InputError("log_probs", tuple(table.shape), hint)
    vocab = table.shape[0]
    off = max(float(table[..., site].logsumexp(site).abs().max()) for site in range(sites))
    if off > 1e-6:
        hint = "normalise the distribution of each site: this is the largest log of its sum"
        raise InputError("log_probs", off, hint)
    states, rests = vocab**sites, vocab ** (sites - 1)
    number = np.arange(states).reshape((vocab,) * sites)
    rest = np.arange(rests).reshape((vocab,) * (sites - 1))
    places = np.stack([np.expand_dims(rest, site).repeat(vocab, site).ravel() for site in range(sites)])
    marginals = states + np.arange(sites)[:, None] * rests + places
    equations = np.arange(sites * states)
    # log p(x) - log m_i(rest) = log p_i(x_i | rest), site after site.
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
