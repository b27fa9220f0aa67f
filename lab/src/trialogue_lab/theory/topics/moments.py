"""Exact squared loss of a layer with uniform attention on documents of any length.

A document of N words gives x, the mean of its one-hot inputs. At a masked position, W x predicts the one-hot
vector y of the original word. The loss is determined by the second moments of x and y. For infinitely long
documents, the optimal W is not unique. At finite length, it is unique. Vectors have V + 1 entries, one for
[MASK] and one for each of V words.
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
import scipy.stats
import torch
from pydantic import BeforeValidator
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.data import BertMasking, TopicModel
from trialogue.errors import InputError
from trialogue.validation import Count, InstanceOf, NonNegative, as_tuple, validated

Range = Annotated[tuple[Count, Count], BeforeValidator(as_tuple)]
"""Shortest and longest document length."""


class Moments(NamedTuple):
    """Second moments of inputs and targets, which determine the squared loss of predicting masked words linearly.

    x is the mean of the one-hot inputs of a document, and y the one-hot original word at a masked position. V is the
    number of words.

    Attributes:
        read: E[x x^T], shape (V + 1, V + 1) float64.
        cross: E[y x^T], shape (V + 1, V + 1) float64.
    """

    read: Tensor
    cross: Tensor


@validated
def compute_moments(
    model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking], lengths: Count | Range | None = None
) -> Moments:
    """Compute the second moments of inputs and targets in masked-word prediction on documents of a topic model.

    As in equation 2.1, all documents with a masked position have equal weight, and so do the masked positions
    of one document.

    Args:
        model: Topic model.
        masking: Masking probabilities.
        lengths: Number of words in a document, or a pair (shortest, longest) for uniformly distributed
            lengths. None stands for infinitely long documents.
    """
    if masking.p_mask == 0:
        raise InputError("p_mask", masking.p_mask, "nothing is predicted: use a probability above 0")
    words = model.vocab_size
    same, different = model.share_moments()
    pairs = torch.full((words + 1, words + 1), 1 / words, dtype=torch.float64)
    pairs[0, 0] = 1
    # E[(1, P) (1, P)^T] for the word distribution P. Affine maps of P act on it as matrices.
    pairs[1:, 1:] = (different + (same - different) * model.same_topic()) / model.words_per_topic**2
    cross = torch.eye(words + 1, dtype=torch.float64)
    cross[0, 0] = 0
    if lengths is None:
        read = _make_input_map(masking.read, words)
        return Moments(read @ pairs @ read.T, cross @ pairs @ read.T)
    masked = _make_input_map(masking.read_where_masked, words)
    mean = pairs[:, 0]
    # Joint distribution of a masked word and the input at its position.
    own = torch.zeros_like(cross)
    own[1:] = (masked[:, :1] + masked[:, 1:]).T / words
    crossed, plain = masked @ pairs @ cross, cross @ pairs @ cross
    chance, n, m = _compute_count_distribution(masking.p_mask, lengths)
    others = n - m

    def average(count: Tensor) -> float:
        return float((chance * count).sum())

    return Moments(
        average(m / n**2) * (masked @ mean).diag()
        + average(others / n**2) * (cross @ mean).diag()
        + average(m * (m - 1) / n**2) * (masked @ pairs @ masked.T)
        + average(m * others / n**2) * (crossed + crossed.T)
        + average(others * (others - 1) / n**2) * plain,
        average(1 / n) * own + average((m - 1) / n) * crossed.T + average(others / n) * plain,
    )


def _compute_count_distribution(
    p_mask: float, lengths: int | tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the joint distribution of document length and number of masked positions.

    Returns probabilities (lengths, most), and the two numbers for each entry.
    """
    least, most = lengths if isinstance(lengths, tuple) else (lengths, lengths)
    if most < least:
        raise InputError("lengths", lengths, "give the shortest length first")
    n = np.arange(least, most + 1)[:, None]
    m = np.arange(1, most + 1)[None]
    chance = scipy.stats.binom.pmf(m, n, p_mask)
    chance /= chance.sum(1, keepdims=True) * len(n)
    return torch.from_numpy(chance), torch.from_numpy(n).double(), torch.from_numpy(m).double()


@validated
def least_squares(moments: InstanceOf[Moments], ridge: NonNegative = 0.0) -> Tensor:
    """Return the matrix W that minimizes the expected squared error |y - W x|^2.

    Args:
        moments: Second moments of inputs x and targets y.
        ridge: Factor of an L2 penalty on W. Without it, the solution of minimum norm is returned.

    Returns:
        Matrix (V + 1, V + 1) float64.
    """
    if ridge == 0:
        return moments.cross @ torch.linalg.pinv(moments.read, rtol=1e-10, hermitian=True)
    shifted = moments.read + ridge * torch.eye(len(moments.read), dtype=torch.float64)
    solved: Tensor = torch.linalg.solve(shifted, moments.cross.T).T
    return solved


@validated
def squared_loss(values: Annotated[Tensor, Reals("words words")], moments: InstanceOf[Moments]) -> float:
    """Return the expected squared error |y - W x|^2 per masked position (equation 2.3).

    Args:
        values: Matrix W (V + 1, V + 1).
        moments: Second moments of inputs x and targets y.
    """
    if values.shape != moments.read.shape:
        raise InputError("values", tuple(values.shape), f"use the shape {tuple(moments.read.shape)}")
    matrix = values.detach().double()
    return float(1 - 2 * (matrix * moments.cross).sum() + ((matrix @ moments.read) * matrix).sum())


def _make_input_map(distribution: Callable[[Tensor], Tensor], words: int) -> Tensor:
    """Return the affine map from a distribution of words to the distribution of inputs, a matrix (V + 1, V + 1).

    It is applied to the vector (1, P) for a word distribution P.
    """
    level = distribution(torch.zeros(words, dtype=torch.float64))
    linear = distribution(torch.eye(words, dtype=torch.float64)) - level
    return torch.cat((level[:, None], linear.T), 1)
