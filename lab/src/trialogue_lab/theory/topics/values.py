"""Optimal values and embeddings under uniform attention.

The results are Lemma 2.1.1 and Theorems 2.1.1, 2.1.2 and 2.1.4 of the thesis. They are for infinitely long documents
(Assumption 2.1.1) of 1 <= tau < T topics. For tau = T, all documents have the same word distribution, and many more
matrices are optimal.
"""

from typing import Annotated, NamedTuple

import torch
from torch import Tensor

from trialogue.arrays import Reals
from trialogue.data import BertMasking, TopicModel
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.validation import InstanceOf, Natural, validated

Square = Annotated[Tensor, Reals("words words")]
"""Square matrix of finite numbers, with one row for [MASK] and for each word."""


class Constants(NamedTuple):
    """c_1, c_2 and c_3 of Lemma 2.1.1; c_3 is called c_4 in the proofs about attention."""

    c1: float
    c2: float
    c3: float


@validated
def constants(model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking]) -> Constants:
    """Return the constants of Lemma 2.1.1.

    Raises:
        InputError: If the lemma does not apply: documents of all topics or with Dirichlet shares, no masked
            words, or no [MASK] input.
    """
    if model.topics_per_document is None:
        raise InputError("model", "Dirichlet", "give a TopicModel with topics_per_document")
    if model.topics_per_document == model.topics:
        hint = (
            f"with all {model.topics} topics every document shows the same law of words, which a single equation "
            "fits: optima are not those of Lemma 2.1.1; use fewer"
        )
        raise InputError("topics_per_document", model.topics_per_document, hint)
    if masking.p_mask == 0:
        raise InputError("p_mask", masking.p_mask, "nothing is predicted: use a probability above 0")
    if masking.p_hidden <= 1e-12:
        hint = f"with p_correct={masking.p_correct} no [MASK] is read: use less"
        raise InputError("p_random", masking.p_random, hint)
    kept = 1 - (1 - masking.p_correct) * masking.p_mask
    if kept <= 0:
        raise InputError("p_mask", masking.p_mask, "no word is read as it is: use a probability below 1")
    return Constants(
        masking.p_random / (masking.p_hidden * kept * model.vocab_size),
        1 / (masking.p_hidden * masking.p_mask) - 1,
        1 / kept,
    )


@validated
def optimal_values(
    model: InstanceOf[TopicModel], p_mask: float = 0.15, p_correct: float = 0.1, p_random: float = 0.1
) -> Tensor:
    """Return W^V (T v + 1, T v + 1) float64 of Theorem 2.1.2: the optimum with a vanishing L2 penalty.

    It is the minimum-norm optimal matrix of Lemma 2.1.1. Row 0 is zero, and the rest of column 0 is constant.
    Entries of words of different topics are constant, and those of the same topic are larger by c_3 / v.

    Args:
        model: Topic model.
        p_mask: Probability of masking.
        p_correct: Probability of keeping a masked word.
        p_random: Probability of a random word.
    """
    return _values(model, BertMasking(p_mask=p_mask, p_correct=p_correct, p_random=p_random))


def _values(model: TopicModel, masking: BertMasking) -> Tensor:
    c1, c2, c3 = constants(model, masking)
    scale, words = c2**2 + model.vocab_size, model.vocab_size
    values = model.same_topic() * (c3 / model.words_per_topic) - (c1 * c2 + c3) / scale
    return _framed(values, torch.full((words,), (c2 * c3 - c1 * words) / scale, dtype=torch.float64))


@validated
def diagonal_values(model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking]) -> Tensor:
    """Return D^V (T v + 1, T v + 1) of Definition 2.1.2.

    It has c_3 on the diagonal, -c_1 in column 0 and zeros in row 0.
    """
    c1, _, c3 = constants(model, masking)
    words = model.vocab_size
    diagonal = c3 * torch.eye(words, dtype=torch.float64)
    return _framed(diagonal, torch.full((words,), -c1, dtype=torch.float64))


@validated
def optimal_member(
    model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking], seed: Natural = 0
) -> Tensor:
    """Return a random matrix (T v + 1, T v + 1) float64 of the solution set of Lemma 2.1.1."""
    c1, c2, c3 = constants(model, masking)
    words, size = model.vocab_size, model.words_per_topic
    random = generator(seed, "topics", "member")
    drawn = torch.randn(words + 1, words + 1, generator=random, dtype=torch.float64)
    free, column = drawn[:, 0], torch.empty(words + 1, dtype=torch.float64)
    column[0], column[1:] = -c2 * free[0], -c1 - c2 * free[1:]
    # Sums over the words of a topic are fixed, what is within them is not.
    sums = free[:, None] * size + torch.zeros(words + 1, model.topics, dtype=torch.float64)
    sums[1:] += c3 * model.same_topic()[:, ::size]
    inside = drawn[:, 1:].view(words + 1, model.topics, size)
    inside = inside + ((sums - inside.sum(2)) / size)[:, :, None]
    return torch.cat((column[:, None], inside.flatten(1)), 1)


@validated
def values_violation(
    values: Square, model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking]
) -> float:
    """Return the largest residual of the equations of Lemma 2.1.1, which is zero exactly on the solution set.

    Column 0 of row i determines u_i, and the sums over topics must match it.
    """
    c1, c2, c3 = constants(model, masking)
    matrix = _square(values, model)
    size = model.words_per_topic
    free = torch.cat((-matrix[:1, 0], -matrix[1:, 0] - c1)) / c2
    wanted = free[:, None] * size + torch.zeros(len(matrix), model.topics, dtype=torch.float64)
    wanted[1:] += c3 * model.same_topic()[:, ::size]
    sums = matrix[:, 1:].reshape(len(matrix), model.topics, size).sum(2)
    return float((sums - wanted).abs().max())


@validated
def optimal_embedding(
    model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking], printed: bool = False
) -> Tensor:
    """Return W^E^T W^E (T v + 1, T v + 1) float64 of Theorem 2.1.1 for the bias `embedding_bias`.

    The diagonal is c_3, except for [MASK], where it must be zero. The `printed` example has c_3 there as
    well, which violates condition (1a).
    """
    c3 = constants(model, masking).c3
    embedding = c3 * torch.eye(model.vocab_size + 1, dtype=torch.float64)
    if not printed:
        embedding[0, 0] = 0
    return embedding


@validated
def embedding_bias(
    model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking], printed: bool = False
) -> Tensor:
    """Return b^pred (T v + 1,) float64 of Theorem 2.1.1: -p_m p_r c_3 / (T v), and 0 at [MASK].

    The `printed` theorem lacks the exception at [MASK].
    """
    c3 = constants(model, masking).c3
    level = -masking.p_mask * masking.p_random * c3 / model.vocab_size
    bias = torch.full((model.vocab_size + 1,), level, dtype=torch.float64)
    if not printed:
        bias[0] = 0
    return bias


def _framed(words: Tensor, column: Tensor) -> Tensor:
    """Prepend a zero row and a `column` (V,) to `words` (V, V)."""
    return torch.cat(
        (torch.zeros(1, len(words) + 1, dtype=torch.float64), torch.cat((column[:, None], words), 1))
    )


def _square(values: Tensor, model: TopicModel) -> Tensor:
    size = model.vocab_size + 1
    matrix = values.detach().double()
    if matrix.shape != (size, size):
        raise InputError("values", tuple(matrix.shape), f"give a matrix ({size}, {size})")
    return matrix
