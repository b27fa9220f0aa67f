"""The joint distribution of a block of spins, as a table of its states: while these can be listed."""

import math

import torch
from torch import Tensor

from trialogue.data.ising.couplings import Clique, Dense
from trialogue.errors import InputError
from trialogue.oracles import sites_of, whole_sequences

_UNDERFLOW = 1e-290  # sums of smaller probabilities lose digits


def block_table(
    couplings: Dense | Clique, field: Tensor, spins: Tensor, block: Tensor, most: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Log-weights (rows, 2^k) of the states of each row's block, its sites (rows, k), and which of them pad it.

    `spins` (rows, N) of ±1, `block` (rows, N) bool; k is the largest block's size. Padding comes first, with its token
    0 alone allowed, so that neither the order of a block's states nor their sums depend on the other rows. Raises
    `InputError` where k is more than `most`.
    """
    size = int(block.sum(1).max()) if len(block) else 0
    if size > most:
        raise InputError(
            "block",
            size,
            f"the joint distribution of the block would list 2^{size} states (at most 2^{most}): use smaller blocks",
        )
    order, held = sites_of(block)
    local = couplings.local(spins * ~block) + field
    up = whole_sequences(2, size, field.device)
    values = 2.0 * up.double() - 1
    i, j = torch.triu_indices(size, size, 1, device=field.device)
    among = couplings.among(order)[:, i, j]
    among = among * ~(held[:, i] | held[:, j])
    weights = (local.gather(1, order) * ~held) @ values.T + among @ (values[:, i] * values[:, j]).T
    return weights.masked_fill(held.double() @ up.double().T > 0, -math.inf), order, held


def table_marginals(weights: Tensor, held: Tensor) -> Tensor:
    """log p(x_i) (rows, k, 2) of each site i of a block whose states have the log-weights `weights` (rows, 2^k).

    Sites that are `held` (rows, k) have one token only.
    """
    states = whole_sequences(2, held.shape[1], held.device)
    distribution, up = weights.softmax(1), states.double()
    probabilities = torch.stack((distribution @ (1 - up), distribution @ up), 2)
    answer = probabilities.log()
    # Sums in logarithms keep what underflows, and take many times as long.
    rows = ((probabilities < _UNDERFLOW).any(2) & ~held).any(1).nonzero()[:, 0]
    if len(rows):
        log_law = weights[rows].log_softmax(1)
        sums = [log_law[:, column == token].logsumexp(1) for column in states.T for token in (0, 1)]
        answer[rows] = torch.stack(sums, 1).view(len(rows), -1, 2)
    return answer
