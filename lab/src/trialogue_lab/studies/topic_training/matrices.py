"""What rows say of a trained matrix: means over classes of its entries, and the entries themselves."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from trialogue.data import TopicModel


def classes(matrix: Tensor, model: TopicModel) -> dict[str, float]:
    """Means over entries of the same word, of the same topic and of other topics, and the deviation of the last."""
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


def pictured(matrix: Tensor) -> Iterator[dict[str, Any]]:
    """The entries among words, row by row, for a picture."""
    for place, line in enumerate(matrix.detach()[1:, 1:].double().tolist()):
        yield {
            "kind": "matrix",
            "row": place,
            **{f"word_{each}": round(value, 5) for each, value in enumerate(line)},
        }
