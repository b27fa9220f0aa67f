"""Conversion of a linear map of features to network weights.

The features of a context are the outputs of attention heads (H d_h numbers) and the embedding of the last token (d
numbers), which reaches the output through the skip connection. A network cannot multiply its skip connection by a
matrix, so that matrix is multiplied into the embeddings.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.models.networks.attention_only import AttentionOnly
from trialogue_lab.theory.memorization.encoders import Encoder


def padded_states(encoder: Encoder, features: Tensor, width: int) -> Tensor:
    """Return the network outputs that have the wanted logits, padded to the width of the network.

    The output layer does not read the padding columns. They copy the skip connection to keep its matrix invertible.

    Args:
        encoder: Encoder with states (T, rank), the outputs with the wanted logits.
        features: Features (T, H d_h + d), whose last d columns are the skip connection.
        width: Width d of the network.

    Returns:
        Outputs (T, d).
    """
    spare = width - encoder.states.shape[1]
    return torch.cat((encoder.states, features[:, features.shape[1] - spare :]), 1)


def complete(solution: NDArray[np.float64], features: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Change a linear map of features so that its part on the skip connection is invertible.

    If the last tokens of the contexts do not span all d dimensions, the minimum-norm solution maps the unused
    directions of the embedding to zero. The function maps them to unused output directions instead. The values on
    `features` do not change.

    Args:
        solution: Minimum-norm map (H d_h + d, d) from features to outputs. The last d rows act on the skip connection.
        features: Features (n, H d_h + d) of the contexts.
        width: Width d.

    Returns:
        Map (H d_h + d, d).
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
    """Set the weights of a network so that its output is a linear map of its features.

    The last d rows of the map act on the skip connection by an invertible matrix R. Token and position
    embeddings are multiplied by R. Queries, keys and values are multiplied by its inverse, so the heads
    receive the same inputs as before.

    Args:
        network: Network whose heads produced the features. Its weights are changed in place.
        solution: Map (H d_h + d, d) from features to activations.
        encoder: Encoder that provides the unembedding.

    Returns:
        Condition number of R.
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
