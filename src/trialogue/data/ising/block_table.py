"""Joint distribution of a block of spins, as a table of all its states."""

import math

import torch
from torch import Tensor

from trialogue.data.ising.couplings import Clique, Dense
from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences, list_sites

_UNDERFLOW = 1e-290  # Smaller probabilities lose precision.


def block_table(
    couplings: Dense | Clique, field: Tensor, spins: Tensor, block: Tensor, max_size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the log-weights of all joint states of a block of spins, given all other spins.

    Blocks that are smaller than the largest block are padded on the left with columns of token 0.

    Args:
        couplings: Couplings J / T of the model.
        field: Field h / T (N,) of the model.
        spins: Spins (rows, N) of ±1. Spins in the block are ignored.
        block: Mask (rows, N) bool of the sites in the block of each row.
        max_size: Maximum size of a block.

    Returns:
        Log-weights (rows, 2^k) of the states, the sites (rows, k) of the blocks, and a mask (rows, k) bool of
        the padding, where k is the size of the largest block. States are in the order of `itertools.product`.

    Raises:
        InputError: If a block has more than `max_size` sites.
    """
    size = int(block.sum(1).max()) if len(block) else 0
    if size > max_size:
        hint = f"use smaller blocks, because the table would have 2^{size} states (at most 2^{max_size})"
        raise InputError("block", size, hint)
    order, is_padding = list_sites(block)
    local = couplings.local(spins * ~block) + field
    up = enumerate_sequences(2, size, field.device)
    values = 2.0 * up.double() - 1
    i, j = torch.triu_indices(size, size, 1, device=field.device)
    local, pairs = local.gather(1, order), couplings.submatrix(order)[:, i, j]
    has_padding = bool(is_padding.any())
    if has_padding:
        local, pairs = local * ~is_padding, pairs * ~(is_padding[:, i] | is_padding[:, j])
    weights = local @ values.T + pairs @ (values[:, i] * values[:, j]).T
    if has_padding:
        weights = weights.masked_fill(is_padding.double() @ up.double().T > 0, -math.inf)
    return weights, order, is_padding


def table_marginals(weights: Tensor, is_padding: Tensor) -> Tensor:
    """Return the marginal log-probabilities of each site of the blocks.

    Args:
        weights: Log-weights (rows, 2^k) of all states of a block, from `block_table`.
        is_padding: Mask (rows, k) bool of the padding, from `block_table`.

    Returns:
        Log-probabilities (rows, k, 2) of the tokens 0 and 1.
    """
    states = enumerate_sequences(2, is_padding.shape[1], is_padding.device)
    distribution, up = weights.softmax(1), states.double()
    probabilities = torch.stack((distribution @ (1 - up), distribution @ up), 2)
    log_probs = probabilities.log()
    # Summation in log space avoids underflow but is much slower, so only the affected rows use it.
    rows = ((probabilities < _UNDERFLOW).any(2) & ~is_padding).any(1).nonzero()[:, 0]
    if len(rows):
        log_distribution = weights[rows].log_softmax(1)
        sums = [log_distribution[:, column == token].logsumexp(1) for column in states.T for token in (0, 1)]
        log_probs[rows] = torch.stack(sums, 1).view(len(rows), -1, 2)
    return log_probs
