"""Spins of a model: their signs, their fields, and the laws of single ones."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from trialogue.arrays import real_tensor
from trialogue.errors import InputError

_UNDERFLOW = 1e-290  # sums of smaller probabilities lose digits


def site_laws(weights: Tensor, states: Tensor, held: Tensor) -> Tensor:
    """log p(x_i) (rows, k, 2) of each site i where `states` (2^k, k) have the log-weights `weights` (rows, 2^k).

    Sites that are `held` (rows, k) have one token only.
    """
    law, up = weights.softmax(1), states.double()
    probabilities = torch.stack((law @ (1 - up), law @ up), 2)
    answer = probabilities.log()
    # Sums in logarithms keep what underflows, and take many times as long.
    rows = ((probabilities < _UNDERFLOW).any(2) & ~held).any(1).nonzero()[:, 0]
    if len(rows):
        log_law = weights[rows].log_softmax(1)
        sums = [log_law[:, column == token].logsumexp(1) for column in states.T for token in (0, 1)]
        answer[rows] = torch.stack(sums, 1).view(len(rows), -1, 2)
    return answer


def checked_field(
    field: Tensor | float, sites: int, device: torch.device | None = None, one_for_all: bool = False
) -> Tensor:
    """Fields (N,) float64 of N = `sites` spins, or one number for all; raises `InputError` where they are none."""
    field = real_tensor("field", field, f"give one number for each of the {sites} sites", device)
    if one_for_all and field.ndim == 0:
        field = field.expand(sites)
    if field.shape != (sites,):
        raise InputError("field", tuple(field.shape), f"give one number for each of the {sites} sites")
    field = field.clone()
    if not bool(torch.isfinite(field).all()):
        raise InputError("field", float(field[~torch.isfinite(field)][0]), "give finite fields")
    return field


def signs(tokens: Tensor) -> Tensor:
    """Spins -1 and +1, float64, of tokens 0 and 1."""
    return 2.0 * tokens.double() - 1


def log_probs_of(odds: Tensor) -> Tensor:
    """log P(-1), log P(+1) (..., 2) from the log of their ratio (...)."""
    return torch.stack((logsigmoid(-odds), logsigmoid(odds)), -1)
