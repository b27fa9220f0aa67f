"""How many tokens a masked model's answer depends on at once: its logits by interaction order, over all contexts.

A function of tokens is a sum of terms, each of some of the tokens, that average to zero over every one of these. For
two values their coefficients are those of Walsh and Hadamard.
"""

import math

import torch
from torch import Tensor

from trialogue.errors import InputError, whole_number
from trialogue.oracles import Masked, whole_sequences

CONTEXTS = 2**20
"""More contexts are not listed."""


def logit_spectrum(model: Masked, sites: int, site: int = 0) -> Tensor:
    """The largest coefficient (sites,) float64 of the logits at `site`, by how many of the other tokens a term is of.

    `sites` is the length of the sequences. Logits are log-probabilities less their mean over values, so that a gauge
    does not matter. A model with interactions of k bodies at most has zeros from k on. Raises `InputError` where there
    are too many contexts to list.
    """
    sites = whole_number("sites", sites, 1)
    site, vocab = whole_number("site", site, 0, sites - 1), model.vocab_size
    if (sites - 1) * math.log2(vocab) > math.log2(CONTEXTS) + 1e-9:
        hint = f"{vocab}^{sites - 1} contexts are too many to list: use fewer sites"
        raise InputError("sites", sites, hint)
    others = whole_sequences(vocab, sites - 1) if sites > 1 else torch.empty(1, 0, dtype=torch.int64)
    asked = torch.zeros(len(others), 1, dtype=torch.int64)
    tokens = torch.cat((others[:, :site], asked, others[:, site:]), 1)
    laws = model.site_log_weights(tokens, torch.full((len(tokens),), site)).double()
    basis, terms = _basis(vocab), laws - laws.mean(1, keepdim=True)
    coefficients = terms.view([vocab] * (sites - 1) + [vocab])
    for axis in range(sites - 1):
        coefficients = (coefficients.movedim(axis, -1) @ basis.T).movedim(-1, axis)
    largest, order = coefficients.reshape(-1, vocab).abs().amax(1), (others > 0).sum(1)
    return torch.stack([largest[order == size].max() for size in range(sites)])


def _basis(values: int) -> Tensor:
    """An orthonormal basis (V, V) of functions of one token, by rows: the constant first."""
    triangular = torch.eye(values, dtype=torch.float64)
    triangular[:, 0] = 1.0
    columns, _ = torch.linalg.qr(triangular)
    return columns.T
