"""Tests of Lemma 2.1.1 and Theorems 2.1.1, 2.1.2 and 2.1.4 against all documents, and of moments of inputs."""

import math
from itertools import combinations, product
from typing import Any

import pytest
import torch
from torch import Tensor

from one_line_errors import refusals
from trialogue.data import BertMasking, TopicModel
from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue_lab.theory import topics

BERT = BertMasking()
OTHER = BertMasking(p_mask=0.4, p_correct=0.05, p_random=0.3)
SIZES = [(4, 3, 2), (5, 2, 1), (5, 2, 4), (2, 3, 1)]


def population(t: TopicModel, masking: BertMasking) -> tuple[Tensor, Tensor]:
    """Return inputs under uniform attention and target words for all sets of topics, (V + 1, sets) each."""
    tau = t.topics_per_document
    assert tau is not None
    words = torch.zeros(math.comb(t.topics, tau), t.topics, t.words_per_topic, dtype=torch.float64)
    for row, chosen in enumerate(combinations(range(t.topics), tau)):
        words[row, list(chosen)] = 1 / (tau * t.words_per_topic)
    distributions = words.flatten(1)
    return masking.read(distributions).T, torch.cat((torch.zeros(1, len(distributions)), distributions.T))


def misfit(matrix: Tensor, t: TopicModel, masking: BertMasking) -> float:
    read, targets = population(t, masking)
    return float((matrix @ read - targets).abs().max())


@pytest.mark.parametrize("masking", [BERT, OTHER])
@pytest.mark.parametrize("size", SIZES)
def test_solution_set_agrees_with_all_documents(size: tuple[int, int, int], masking: BertMasking) -> None:
    t = TopicModel(*size)
    read, _ = population(t, masking)
    assert int(torch.linalg.matrix_rank(read)) == t.topics
    for seed in range(3):
        member = topics.optimal_member(t, masking, seed)
        assert misfit(member, t, masking) < 1e-12
        assert topics.values_violation(member, t, masking) < 1e-12
    # Adding any matrix that vanishes on all documents gives another solution.
    unseen = torch.eye(len(read), dtype=torch.float64) - read @ torch.linalg.pinv(read)
    fits = topics.optimal_member(t, masking, 9) + torch.randn(read.shape[0], read.shape[0]).double() @ unseen
    assert misfit(fits, t, masking) < 1e-12
    assert topics.values_violation(fits, t, masking) < 1e-11
    moved = fits.clone()
    moved[1, 2] += 0.1
    assert topics.values_violation(moved, t, masking) > 0.05
    assert misfit(moved, t, masking) > 1e-4


def test_documents_with_all_topics_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^topics_per_document=3: with all 3 topics .* single equation"):
        topics.optimal_values(TopicModel(3, 2, 3))


def test_theorem_2_1_2_agrees_with_published_values() -> None:
    found = topics.optimal_values(TopicModel(topics=10, words_per_topic=10, topics_per_document=3))
    assert found.shape == (101, 101)
    assert found.dtype == torch.float64
    assert float(found[1, 10]) == pytest.approx(0.10802, abs=5e-6)
    assert float(found[1, 11]) == pytest.approx(-0.00759, abs=5e-6)
    assert float(found[100, 0]) == pytest.approx(0.05419, abs=5e-6)
    assert float(found[0].abs().max()) == 0
    c1, c2, c3 = topics.constants(TopicModel(10, 10, 3), BERT)
    assert (c1, c2, c3) == pytest.approx((0.0014451, 7.33333, 1.1560694), rel=1e-5)


@pytest.mark.parametrize("masking", [BERT, OTHER])
@pytest.mark.parametrize("size", [*SIZES, (10, 10, 3), (7, 1, 3)])
def test_theorem_2_1_2_is_the_limit_of_ridge_regression(
    size: tuple[int, int, int], masking: BertMasking
) -> None:
    t = TopicModel(*size)
    optimum = topics.optimal_values(t, masking.p_mask, masking.p_correct, masking.p_random)
    assert topics.values_violation(optimum, t, masking) < 1e-12
    far = topics.compute_moments(t, masking)
    assert float((topics.least_squares(far) - optimum).abs().max()) < 1e-12
    errors = [float((topics.least_squares(far, ridge) - optimum).abs().max()) for ridge in (1e-4, 1e-6, 1e-8)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-5


@pytest.mark.parametrize("masking", [BERT, OTHER])
def test_corrected_theorem_2_1_1_holds_and_the_published_one_does_not(masking: BertMasking) -> None:
    t = TopicModel(4, 3, 2)
    read, targets = population(t, masking)

    def error(embedding: Tensor, bias: Tensor) -> float:
        return float((embedding @ read + bias[:, None] - targets).abs().max())

    right, bias = topics.optimal_embedding(t, masking), topics.embedding_bias(t, masking)
    assert error(right, bias) < 1e-12
    blocks = torch.zeros(13, 13, dtype=torch.float64)
    blocks[1:, 1:] = (
        torch.block_diag(*[torch.ones(3, 3, dtype=torch.float64)] * 4) * topics.constants(t, masking).c3 / 3
    )
    assert error(blocks, bias) < 1e-12
    assert int(torch.linalg.matrix_rank(blocks)) == t.topics
    printed = topics.optimal_embedding(t, masking, printed=True)
    assert error(printed, bias) > 0.05
    assert error(right, topics.embedding_bias(t, masking, printed=True)) > 1e-4


def enumerate_moments(t: TopicModel, masking: BertMasking, length: int) -> topics.Moments:
    """Return the moments by a sum over all documents, masks and inputs of a length."""
    size = t.vocab_size + 1
    read, targets = torch.zeros(2, size, size, dtype=torch.float64)
    total = 0.0
    documents = enumerate_sequences(t.vocab_size, length)
    unit = torch.eye(size, dtype=torch.float64)
    where = masking.read_where_masked(torch.eye(t.vocab_size, dtype=torch.float64))
    for document, chance in zip(documents, t.log_prob(documents).exp().tolist(), strict=True):
        for mask in list(product((False, True), repeat=length))[1:]:
            rate = math.prod(masking.p_mask if each else 1 - masking.p_mask for each in mask)
            distributions = [
                where[word] if hidden else unit[word + 1] for word, hidden in zip(document, mask, strict=True)
            ]
            for inputs in product(range(size), repeat=length):
                weight = (
                    chance
                    * rate
                    * math.prod(
                        float(distribution[each])
                        for distribution, each in zip(distributions, inputs, strict=True)
                    )
                )
                if weight == 0:
                    continue
                x = unit[list(inputs)].mean(0)
                y = torch.stack(
                    [unit[word + 1] for word, hidden in zip(document, mask, strict=True) if hidden]
                ).mean(0)
                read += weight * x[:, None] * x
                targets += weight * y[:, None] * x
                total += weight
    return topics.Moments(read / total, targets / total)


SMALL = [TopicModel(2, 2, 1), TopicModel(3, 1, 2), TopicModel(2, 1, concentration=0.4)]


def moments_error(function: Any, t: TopicModel) -> float:
    exact, found = enumerate_moments(t, OTHER, 3), function(t, OTHER, 3)
    return max(float((one - other).abs().max()) for one, other in zip(exact, found, strict=True))


@pytest.mark.parametrize("t", SMALL[1:])
def test_moments_agree_with_enumeration_of_inputs(t: TopicModel) -> None:
    assert moments_error(topics.compute_moments, t) < 1e-12


def test_optimum_for_documents_of_finite_length_has_a_diagonal() -> None:
    """For documents of the thesis, block entries off the diagonal are 0.102, and rows of a block sum to 1.13."""
    t = TopicModel(10, 10, concentration=0.1)
    found = topics.least_squares(topics.compute_moments(t, BERT, (100, 150)))
    assert float(found[1, 1]) == pytest.approx(0.2153, abs=1e-4)
    assert float(found[1, 2]) == pytest.approx(0.102, abs=1e-3)
    assert float(found[1, 11]) == pytest.approx(-0.0014, abs=1e-4)
    assert float(found[1, 1:11].sum()) == pytest.approx(1.13, abs=1e-3)


test_invalid_input_raises_a_one_line_error = refusals(
    "^{}",
    [
        (lambda: topics.optimal_values(TopicModel(3, 2, 1), p_mask=0.0), "p_mask=0.0: nothing is predicted"),
        (
            lambda: topics.optimal_values(TopicModel(3, 2, 1), p_correct=0.9),
            "p_random=0.1: with p_correct=0.9, no",
        ),
        (lambda: topics.optimal_values(TopicModel(3, 2, concentration=1.0)), "model='Dirichlet'"),
    ],
)
