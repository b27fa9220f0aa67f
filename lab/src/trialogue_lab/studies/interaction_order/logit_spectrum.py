"""Interaction orders of a masked language model, from its logits in all contexts.

A function of tokens is a sum of terms. Each term depends on a subset of the tokens and averages to zero over each of
them. For two token values, the coefficients are the Walsh-Hadamard coefficients.
"""

import math

import torch
from torch import Tensor

from trialogue.errors import InputError
from trialogue.oracles import Masked, enumerate_sequences
from trialogue.validation import Count, check, integer_range

CONTEXTS = 2**20
"""Maximum number of contexts that are enumerated."""


def compute_logit_spectrum(model: Masked, sites: int, site: int = 0) -> Tensor:
    """Return the strength of the interactions of each order in the predictions of a masked language model.

    The logits of the masked token are a sum of terms, each of which depends on a subset of the other tokens.
    The number of tokens in the subset is the order of the term.

    Args:
        model: The masked language model.
        sites: Length of the sequences.
        site: Position of the masked token (default: 0).

    Returns:
        Largest absolute coefficients (sites,), float64. Entry k is the maximum over terms of order k.

    Raises:
        InputError: If `sites` or `site` is out of range, or if there are more than `CONTEXTS` contexts.
    """
    sites = check("sites", sites, Count)
    site, vocab = check("site", site, integer_range(0, sites - 1)), model.vocab_size
    if (sites - 1) * math.log2(vocab) > math.log2(CONTEXTS) + 1e-9:
        hint = f"{vocab}^{sites - 1} contexts are too many to enumerate: use fewer sites"
        raise InputError("sites", sites, hint)
    others = enumerate_sequences(vocab, sites - 1) if sites > 1 else torch.empty(1, 0, dtype=torch.int64)
    masked = torch.zeros(len(others), 1, dtype=torch.int64)
    tokens = torch.cat((others[:, :site], masked, others[:, site:]), 1)
    log_probs = model.site_log_weights(tokens, torch.full((len(tokens),), site)).double()
    basis, terms = _make_basis(vocab), log_probs - log_probs.mean(1, keepdim=True)
    coefficients = terms.view([vocab] * (sites - 1) + [vocab])
    for axis in range(sites - 1):
        coefficients = (coefficients.movedim(axis, -1) @ basis.T).movedim(-1, axis)
    largest, order = coefficients.reshape(-1, vocab).abs().amax(1), (others > 0).sum(1)
    return torch.stack([largest[order == size].max() for size in range(sites)])


def _make_basis(values: int) -> Tensor:
    """Return an orthonormal basis (V, V) of functions of one token. The first function is constant."""
    triangular = torch.eye(values, dtype=torch.float64)
    triangular[:, 0] = 1.0
    columns, _ = torch.linalg.qr(triangular)
    return columns.T
