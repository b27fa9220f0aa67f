"""From a linear map of features to the weights of a network: the skip connection's matrix goes into the embeddings."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.models.attention_only import AttentionOnly
from trialogue_lab.theory.memorization.encoders import Encoder


def padded_states(encoder: Encoder, features: Tensor, width: int) -> Tensor:
    """The states (T, d) that the residual stream should end in: the encoder's, and where they are fewer, spare columns.

    The unembedding does not read the spare ones; they are the skip connection's own, which keeps its matrix invertible.
    """
    spare = width - encoder.states.shape[1]
    return torch.cat((encoder.states, features[:, features.shape[1] - spare :]), 1)


def complete(solution: NDArray[np.float64], features: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """A map of features (H d_h + d, d) with an invertible last block that maps the rows `features` as `solution` does.

    `features` (n, H d_h + d) are those that the solution of least norm was found for. Contexts that end in fewer than
    d tokens leave directions of the embeddings unseen, which it maps to zero.
    """
    skip, read = solution[len(solution) - width :], features[:, features.shape[1] - width :]
    _, seen, directions = np.linalg.svd(read)
    rank = int((seen > max(read.shape) * np.finfo(np.float64).eps * seen[0]).sum())
    if rank == width:
        return solution
    _, scale, reached = np.linalg.svd(skip)
    added = solution.copy()
    added[len(solution) - width :] += scale[:rank].mean() * directions[rank:].T @ reached[rank:]
    return added


def fold(network: AttentionOnly, solution: NDArray[np.float64], encoder: Encoder) -> float:
    """Give `network`, whose heads made the features, weights that map these by `solution` (H d_h + d, d) and unembed.

    The last d rows map x_S by an invertible matrix R^T; with e and p replaced by R e and R p, and the maps of queries,
    keys and values by themselves after R^-1, the heads see what they saw. Returns the condition number of R.
    """
    width, heads, head_width = network.config.width, network.config.heads, network.config.head_width
    weights = torch.from_numpy(solution)
    skip = weights[len(weights) - width :].T.contiguous()
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
