"""Rows about a trained matrix: means over classes of its entries, and the entries themselves."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from trialogue.data import TopicModel


def entry_means(matrix: Tensor, model: TopicModel) -> dict[str, float]:
    """Return the means over entries of the same word, the same topic and other topics.

    Args:
        matrix: Matrix (V + 1, V + 1). Its first row and column belong to [MASK] and are left out.
        model: Topic model of the words.

    Returns:
        The means `diagonal` (same word), `block` (other words of the same topic), `in_topic` (both) and `other` (other
        topics), and the standard deviation `other_std` of the entries of other topics.
    """
    words, same = matrix.detach().double()[1:, 1:], model.same_topic().bool()
    own = torch.eye(model.vocab_size, dtype=torch.bool)
    other = words[~same]
    return {
        "diagonal": float(words[own].mean()),
        "block": float(words[same & ~own].mean()),
        "in_topic": float(words[same].mean()),
        "other": float(other.mean()),
        "other_std": float(other.std()),
    }


def entry_rows(matrix: Tensor) -> Iterator[dict[str, Any]]:
    """Yield the entries of a matrix between words, one row per row of the matrix, for a figure.

    Args:
        matrix: Matrix (V + 1, V + 1). Its first row and column belong to [MASK] and are left out.
    """
    for place, line in enumerate(matrix.detach()[1:, 1:].double().tolist()):
        entries = {f"word_{each}": round(value, 5) for each, value in enumerate(line)}
        yield {"kind": "matrix", "row": place, **entries}
