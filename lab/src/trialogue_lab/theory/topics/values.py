"""Optimal value matrices and embeddings of one attention layer with uniform attention on a topic model.

The results are Lemma 2.1.1 and Theorems 2.1.1, 2.1.2 and 2.1.4 of the thesis. A topic model has T topics with
v words each, and a document contains tau of them. Documents are infinitely long (Assumption 2.1.1), and 1 <=
tau < T. For tau = T, all documents have the same word distribution, and many more matrices are optimal.
Matrices have T v + 1 rows and columns. Row and column 0 belong to [MASK], the others to the words.
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
    """Constants c_1, c_2 and c_3 in the formulas for optimal value matrices (Lemma 2.1.1 of the thesis).

    They depend on the topic model and on the masking. A word is masked with probability p_m. A masked word is kept with
    probability p_c, replaced by a random word with probability p_r, and replaced by [MASK] otherwise.

    Attributes:
        c1: p_r / ((1 - p_c - p_r) (1 - (1 - p_c) p_m) T v) for T topics of v words.
        c2: 1 / ((1 - p_c - p_r) p_m) - 1.
        c3: 1 / (1 - (1 - p_c) p_m), called c_4 in the proofs about attention.
    """

    c1: float
    c2: float
    c3: float


@validated
def constants(model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking]) -> Constants:
    """Compute the constants c_1, c_2 and c_3 in the formulas for optimal value matrices (Lemma 2.1.1).

    See `Constants`.

    Args:
        model: Topic model with a fixed number of topics per document.
        masking: Masking probabilities.

    Raises:
        InputError: If the lemma does not apply, because documents contain all topics or have Dirichlet topic
            proportions, no words are masked, or no masked word is replaced by [MASK].
    """
    if model.topics_per_document is None:
        raise InputError("model", "Dirichlet", "give a TopicModel with topics_per_document")
    if model.topics_per_document == model.topics:
        hint = (
            f"with all {model.topics} topics all documents have the same word distribution, which a single equation "
            "fits: optima are not those of Lemma 2.1.1; use fewer"
        )
        raise InputError("topics_per_document", model.topics_per_document, hint)
    if masking.p_mask == 0:
        raise InputError("p_mask", masking.p_mask, "nothing is predicted: use a probability above 0")
    if masking.p_hidden <= 1e-12:
        hint = (
            f"with p_correct={masking.p_correct}, no masked word is replaced by [MASK]: use a smaller value"
        )
        raise InputError("p_random", masking.p_random, hint)
    kept = 1 - (1 - masking.p_correct) * masking.p_mask
    if kept <= 0:
        raise InputError("p_mask", masking.p_mask, "every word is masked: use a probability below 1")
    return Constants(
        masking.p_random / (masking.p_hidden * kept * model.vocab_size),
        1 / (masking.p_hidden * masking.p_mask) - 1,
        1 / kept,
    )


@validated
def optimal_values(
    model: InstanceOf[TopicModel], p_mask: float = 0.15, p_correct: float = 0.1, p_random: float = 0.1
) -> Tensor:
    """Return the value matrix with which one layer of uniform attention predicts masked words best (Theorem 2.1.2).

    The documents come from a topic model and are infinitely long. Of all optimal matrices (Lemma 2.1.1), this one has
    the smallest norm. Row 0, which belongs to [MASK], is zero, and the rest of column 0 is constant. Entries for two
    words have one value for different topics, and a value larger by c_3 / v for the same topic of v words (see
    `Constants`).

    Args:
        model: Topic model with T topics of v words.
        p_mask: Probability of masking a word.
        p_correct: Probability that a masked word is kept.
        p_random: Probability that a masked word is replaced by a random word.

    Returns:
        Matrix (T v + 1, T v + 1) float64.
    """
    return _compute_optimal_values(model, BertMasking(p_mask=p_mask, p_correct=p_correct, p_random=p_random))


def _compute_optimal_values(model: TopicModel, masking: BertMasking) -> Tensor:
    c1, c2, c3 = constants(model, masking)
    scale, words = c2**2 + model.vocab_size, model.vocab_size
    values = model.same_topic() * (c3 / model.words_per_topic) - (c1 * c2 + c3) / scale
    return _add_mask_entries(
        values, torch.full((words,), (c2 * c3 - c1 * words) / scale, dtype=torch.float64)
    )


@validated
def diagonal_values(model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking]) -> Tensor:
    """Return a diagonal value matrix with which one attention layer predicts masked words (Definition 2.1.2).

    Its diagonal is c_3 and its column 0 is -c_1. Row 0, which belongs to [MASK], is zero. See `Constants` for c_1 and
    c_3.

    Args:
        model: Topic model with T topics of v words.
        masking: Masking probabilities.

    Returns:
        Matrix (T v + 1, T v + 1) float64.
    """
    c1, _, c3 = constants(model, masking)
    words = model.vocab_size
    diagonal = c3 * torch.eye(words, dtype=torch.float64)
    return _add_mask_entries(diagonal, torch.full((words,), -c1, dtype=torch.float64))


@validated
def optimal_member(
    model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking], seed: Natural = 0
) -> Tensor:
    """Return one of the many optimal value matrices, chosen at random (Lemma 2.1.1).

    One attention layer with uniform attention predicts masked words best with any of them.

    Args:
        model: Topic model with T topics of v words.
        masking: Masking probabilities.
        seed: Seed of the random numbers.

    Returns:
        Matrix (T v + 1, T v + 1) float64.
    """
    c1, c2, c3 = constants(model, masking)
    words, size = model.vocab_size, model.words_per_topic
    random = generator(seed, "topics", "member")
    drawn = torch.randn(words + 1, words + 1, generator=random, dtype=torch.float64)
    free, column = drawn[:, 0], torch.empty(words + 1, dtype=torch.float64)
    column[0], column[1:] = -c2 * free[0], -c1 - c2 * free[1:]
    # Only the sums over the words of a topic are fixed.
    sums = free[:, None] * size + torch.zeros(words + 1, model.topics, dtype=torch.float64)
    sums[1:] += c3 * model.same_topic()[:, ::size]
    inside = drawn[:, 1:].view(words + 1, model.topics, size)
    inside = inside + ((sums - inside.sum(2)) / size)[:, :, None]
    return torch.cat((column[:, None], inside.flatten(1)), 1)


@validated
def values_violation(
    values: Square, model: InstanceOf[TopicModel], masking: InstanceOf[BertMasking]
) -> float:
    """Return how far a value matrix is from satisfying the conditions for an optimum (Lemma 2.1.1).

    The lemma fixes the sum of each row over the words of each topic.

    Args:
        values: Value matrix (T v + 1, T v + 1).
        model: Topic model with T topics of v words.
        masking: Masking probabilities.

    Returns:
        Largest deviation from these sums; zero for optimal matrices.
    """
    c1, c2, c3 = constants(model, masking)
    matrix = _check_square(values, model)
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
    """Return the product W^E^T W^E of the optimal embedding matrix with itself (Theorem 2.1.1).

    It is optimal together with the bias `embedding_bias`. The product is diagonal with c_3 (see `Constants`)
    for words. The entry of [MASK] must be zero.

    Args:
        model: Topic model with T topics of v words.
        masking: Masking probabilities.
        printed: Whether to return the example printed in the thesis, which has c_3 also for [MASK] and
            violates condition (1a) of the theorem.

    Returns:
        Matrix (T v + 1, T v + 1) float64.
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
    """Return the optimal bias b^pred of the head that predicts masked words (Theorem 2.1.1).

    The bias of [MASK] is 0. The bias of each word is -p_m p_r c_3 / (T v). Here p_m is the probability of masking, and
    p_r is the probability that a masked word is replaced by a random word (see `Constants` for c_3).

    Args:
        model: Topic model with T topics of v words.
        masking: Masking probabilities.
        printed: Whether to return the bias as printed in the thesis, without the exception for [MASK].

    Returns:
        Vector (T v + 1,) float64.
    """
    c3 = constants(model, masking).c3
    level = -masking.p_mask * masking.p_random * c3 / model.vocab_size
    bias = torch.full((model.vocab_size + 1,), level, dtype=torch.float64)
    if not printed:
        bias[0] = 0
    return bias


def _add_mask_entries(words: Tensor, column: Tensor) -> Tensor:
    """Extend the matrix `words` (V, V) by a row of zeros and by `column` (V,) for the mask token, both in front."""
    return torch.cat(
        (torch.zeros(1, len(words) + 1, dtype=torch.float64), torch.cat((column[:, None], words), 1))
    )


def _check_square(values: Tensor, model: TopicModel) -> Tensor:
    size = model.vocab_size + 1
    matrix = values.detach().double()
    if matrix.shape != (size, size):
        raise InputError("values", tuple(matrix.shape), f"give a matrix ({size}, {size})")
    return matrix
