"""From a linear map of features to the weights of a network: the skip connection's matrix goes into the embeddings."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.models.attention_only import AttentionOnly
from trialogue.theory.memorization.encoders import Encoder


def padded_states(encoder: Encoder, features: Tensor, width: int) -> Tensor:
    """The states (T, d) that the residual stream should end in: the encoder's, and where they are fewer, spare columns.

    The unembedding does not read the spare ones; they are the skip connection's own, which keeps its matrix invertible.
    """
    spare = width - encoder.states.shape[1]
    return torch.cat((encoder.states, features[:, features.shape[1] - spare :]), 1)


def fold(
    network: AttentionOnly, solution: NDArray[np.float64], encoder: Encoder, features: NDArray[np.float64]
) -> float:
    """Give `network`, whose heads made the `features` (T, H d_h + d), weights that map them by `solution` and unembed.

    `solution` (H d_h + d, d) is the one of least norm.

    The last d rows map x_S by a matrix R^T; with e and p replaced by R e and R p, and the maps of queries, keys and
    values by themselves after R^-1, the heads see what they saw. Returns the condition number of R.
    """
    width, heads, head_width = network.config.width, network.config.heads, network.config.head_width
    weights = torch.from_numpy(solution)
    skip = torch.from_numpy(
        _invertible(solution[len(solution) - width :], features[:, -width:])
    ).T.contiguous()
    with torch.no_grad():
        blocks = weights[: len(weights) - width].view(heads, head_width, width)
        network.output.copy_(blocks.transpose(1, 2))
        network.embedding.copy_(network.embedding @ skip.T)
        network.positions.copy_(network.positions @ skip.T)
        for maps in (network.query, network.key, network.value):
            maps.copy_(torch.linalg.solve(skip.T, maps.mT).mT)
        network.unembedding.zero_()
        network.unembedding[:, : encoder.unembedding.shape[1]] = encoder.unembedding
    return float(np.linalg.cond(skip.numpy()))


def _invertible(skip: NDArray[np.float64], read: NDArray[np.float64]) -> NDArray[np.float64]:
    """A matrix (d, d) that maps the rows `read` (T, d) as `skip` does; where they span less, it maps the rest too.

    Contexts that end in fewer than d tokens leave directions of the embeddings unseen, which a solution of least norm
    maps to zero.
    """
    _, seen, directions = np.linalg.svd(read)
    rank = int((seen > max(read.shape) * np.finfo(np.float64).eps * seen[0]).sum())
    if rank == len(skip):
        return skip
    _, scale, reached = np.linalg.svd(skip)
    added: NDArray[np.float64] = skip + scale[:rank].mean() * directions[rank:].T @ reached[rank:]
    return added
