"""Measurements of a trained matrix: mean entries by relation of the two words, and the entries themselves."""

import torch
from torch import Tensor

from trialogue.data import TopicModel
from trialogue_lab.ledger import MeasuredRows


def compute_entry_means(matrix: Tensor, model: TopicModel) -> dict[str, float]:
    """Return the mean entries of a matrix with one entry per pair of words, by relation of the two words.

    Args:
        matrix: Matrix (V + 1, V + 1) with one row and one column per word. The first row and column belong to [MASK]
            and are left out.
        model: Topic model, which assigns a topic to every word.

    Returns:
        Means and a standard deviation, by name.

        - `diagonal`: mean entry of the same word.
        - `block`: mean entry of different words of the same topic.
        - `in_topic`: mean entry of both together.
        - `other`, `other_std`: mean and standard deviation of the entries of different topics.
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


def list_entries(matrix: Tensor) -> MeasuredRows:
    """List the entries of a matrix between words as table rows for a figure.

    Args:
        matrix: Matrix with one entry per pair of words.

    Yields:
        One table row per row of the matrix.
    """
    for place, line in enumerate(matrix.detach()[1:, 1:].double().tolist()):
        entries = {f"word_{each}": round(value, 5) for each, value in enumerate(line)}
        yield {"kind": "matrix", "row": place, **entries}
