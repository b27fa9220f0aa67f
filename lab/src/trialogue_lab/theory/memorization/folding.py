"""Conversion of a linear map of features to network weights.

The features of a context are the outputs of H attention heads of width d_h, and the d numbers of the
embedding of its last token, which reach the output through the skip connection. A network cannot multiply its
skip connection by a matrix. The matrix is therefore multiplied into the embeddings.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trialogue.models.networks.attention_only import AttentionOnly
from trialogue_lab.theory.memorization.encoders import Encoder


def pad_states(encoder: Encoder, features: Tensor, width: int) -> Tensor:
    """Return the outputs that a network must have before its output layer, to produce given logits.

    The encoder has fewer columns than the network's width d. The remaining columns are not read by the output layer.
    They copy the skip connection, which keeps its matrix invertible.

    Args:
        encoder: Encoder with states (T, rank), the outputs with the wanted logits.
        features: Features (T, H d_h + d), whose last d columns are the skip connection.
        width: Width d of the network.

    Returns:
        Outputs (T, d).
    """
    spare = width - encoder.states.shape[1]
    return torch.cat((encoder.states, features[:, features.shape[1] - spare :]), 1)


def complete_map(
    solution: NDArray[np.float64], features: NDArray[np.float64], width: int
) -> NDArray[np.float64]:
    """Extend a linear map of a network's features so that it can be converted to weights, without changing its outputs.

    The map sends the features of a context (head outputs, and the embedding of the last token) to the network output.
    Its part that acts on the skip connection must be invertible. Directions that no last token uses are sent to unused
    output directions instead of zero.

    Args:
        solution: Minimum-norm map (H d_h + d, d) from features to outputs. The last d rows act on the skip
            connection.
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


def fold_into_weights(network: AttentionOnly, solution: NDArray[np.float64], encoder: Encoder) -> float:
    """Change the weights of a network in place such that its output becomes a given linear map of its features.

    The last d rows of the map act on the skip connection by an invertible matrix R. Token and position embeddings are
    multiplied by R. Queries, keys and values are multiplied by its inverse, so the heads receive the same inputs as
    before.

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
