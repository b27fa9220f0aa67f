"""Conversion of a linear map of features to network weights by folding the skip matrix into the embeddings."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.models.networks.attention_only import AttentionOnly
from trialogue_lab.theory.memorization.encoders import Encoder


def padded_states(encoder: Encoder, features: Tensor, width: int) -> Tensor:
    """Return the target states (T, d) of the residual stream: encoder states followed by spare columns.

    The unembedding does not read the spare columns. They copy the skip connection to keep its matrix
    invertible.
    """
    spare = width - encoder.states.shape[1]
    return torch.cat((encoder.states, features[:, features.shape[1] - spare :]), 1)


def complete(solution: NDArray[np.float64], features: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return a map of features (H d_h + d, d) with an invertible last block and the same values on `features`.

    Contexts that end in fewer than d tokens leave directions of the embeddings unused, which the minimum-norm
    solution maps to zero.

    Args:
        solution: Minimum-norm solution (H d_h + d, d).
        features: Features (n, H d_h + d) of the solution.
        width: Width d.
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
    """Set the weights of `network` so that `solution` maps its features, and return the condition number of R.

    The last d rows of the solution map x_S by an invertible matrix R^T. Embeddings e and p become R e and R
    p. Queries, keys and values are composed with R^-1, so the heads see the same inputs.

    Args:
        network: Network whose heads produced the features.
        solution: Map (H d_h + d, d).
        encoder: Encoder that provides the unembedding.
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
