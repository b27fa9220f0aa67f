"""Optimal values and embeddings under uniform attention: Lemma 2.1.1, Theorems 2.1.1, 2.1.2 and 2.1.4 of the thesis.

All is for infinitely long documents (Assumption 2.1.1) of 1 <= tau < T topics. With tau = T every document shows the
same law of words: the optimality conditions are then a single equation, and many more matrices are optimal.
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
"""A square matrix of finite numbers, one row for [MASK] and each word."""


class Constants(NamedTuple):
    """c_1, c_2, c_3 of Lemma 2.1.1; c_3 is c_4 in the proofs about attention."""

    c1: float
    c2: float
    c3: float


@validated
def constants(model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking]) -> Constants:
    """The constants of Lemma 2.1.1.

    Raises `InputError` for what the lemma does not cover: documents of all topics or of Dirichlet shares, nothing
    masked, and no [MASK] read.
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
    """W^V (T v + 1, T v + 1) float64 of Theorem 2.1.2: the optimum under uniform attention with a vanishing L2 penalty.

    Of all optimal matrices (Lemma 2.1.1) that of the least norm: zero in row 0, one number in the rest of column 0, one
    for words of different topics, and c_3 / v more for words of one topic. Raises `InputError` where documents have
    all topics, for another reason that the lemma does not hold, and for what are no probabilities.
    """
    return _values(model, BertMasking(p_mask=p_mask, p_correct=p_correct, p_random=p_random))


def _values(model: TopicModel, masking: BertMasking) -> Tensor:
    c1, c2, c3 = constants(model, masking)
    scale, words = c2**2 + model.vocab_size, model.vocab_size
    values = model.same_topic() * (c3 / model.words_per_topic) - (c1 * c2 + c3) / scale
    return _framed(values, torch.full((words,), (c2 * c3 - c1 * words) / scale, dtype=torch.float64))


@validated
def diagonal_values(model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking]) -> Tensor:
    """D^V (T v + 1, T v + 1) float64 of Definition 2.1.2 with row 0 zero: c_3 on the diagonal, -c_1 in column 0."""
    c1, _, c3 = constants(model, masking)
    words = model.vocab_size
    diagonal = c3 * torch.eye(words, dtype=torch.float64)
    return _framed(diagonal, torch.full((words,), -c1, dtype=torch.float64))


@validated
def optimal_member(
    model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking], seed: Natural = 0
) -> Tensor:
    """A random matrix (T v + 1, T v + 1) float64 of the solution set of Lemma 2.1.1: what that leaves free is drawn."""
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
    """How far `values` (T v + 1, T v + 1) is from the conditions of Lemma 2.1.1: the largest residual of an equation.

    In row i column 0 gives u_i, which the sums over topics must then have. Zero on the solution set, and only there.
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
    """W^E^T W^E (T v + 1, T v + 1) float64, an optimum of Theorem 2.1.1 with the bias `embedding_bias`.

    c_3 on the diagonal but for [MASK], which must be zero; the `printed` example has c_3 there too, which violates
    condition (1a).
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
    """b^pred (T v + 1,) float64 of Theorem 2.1.1: -p_m p_r c_3 / (T v), and 0 at [MASK].

    The theorem is `printed` without that exception.
    """
    c3 = constants(model, masking).c3
    level = -masking.p_mask * masking.p_random * c3 / model.vocab_size
    bias = torch.full((model.vocab_size + 1,), level, dtype=torch.float64)
    if not printed:
        bias[0] = 0
    return bias


def _framed(words: Tensor, column: Tensor) -> Tensor:
    """`words` (V, V) below a row of zeros and beside a `column` (V,)."""
    return torch.cat(
        (torch.zeros(1, len(words) + 1, dtype=torch.float64), torch.cat((column[:, None], words), 1))
    )


def _square(values: Tensor, model: TopicModel) -> Tensor:
    size = model.vocab_size + 1
    matrix = values.detach().double()
    if matrix.shape != (size, size):
        raise InputError("values", tuple(matrix.shape), f"give a matrix ({size}, {size})")
    return matrix
