"""Tests of the losses of Theorems 2.1.3 and 2.1.5 against attention over words, and of their optima."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from one_line_errors import refusals
from trialogue.data import BertMasking, TopicModel
from trialogue_lab.theory.topics import (
    attention_bounds,
    attention_loss,
    diagonal_values,
    optimal_attention,
    optimal_values,
)

BERT = BertMasking()
MASKS = [(0.15, 0.1, 0.1), (0.4, 0.05, 0.3)]


def loss_by_words(
    t: TopicModel, alpha: float, beta: float, p: tuple[float, float, float], values: str, attends: bool
) -> float:
    """Return the loss by a sum over queries and words for a document of the first topics."""
    masking = BertMasking(p_mask=p[0], p_correct=p[1], p_random=p[2])
    tau, size = t.topics_per_document, t.words_per_topic
    assert tau is not None
    word_probabilities = torch.zeros(t.vocab_size, dtype=torch.float64)
    word_probabilities[: tau * size] = 1 / (tau * size)
    read = masking.read(word_probabilities)
    matrix = optimal_values(t, *p) if values == "block" else diagonal_values(t, masking)
    topic = torch.arange(t.vocab_size) // size
    loss = 0.0
    for query in range(t.vocab_size):
        keys = torch.ones(t.vocab_size + 1, dtype=torch.float64)
        keys[0] = 1.0 if attends else 0.0
        keys[1:][topic == topic[query]] = alpha
        keys[1 + query] = beta
        attended = keys * read / (keys * read).sum()
        prediction = matrix @ attended
        for word in range(tau * size):
            chance = word_probabilities[word] * (
                masking.p_correct * (word == query) + masking.p_random / t.vocab_size
            )
            target = torch.zeros_like(prediction)
            target[1 + word] = 1
            loss += float(chance * (prediction - target).square().sum())
    return loss


CASES = [
    ((4, 3, 2), 2.0, 5.0),
    ((5, 2, 1), 0.3, 4.0),
    ((3, 4, 2), 1.0, 1.0),
    ((4, 1, 3), 7.0, 2.5),
    ((3, 2, 2), 0.0, 3.0),
]


def error(
    function: Any,
    case: tuple[tuple[int, int, int], float, float],
    p: tuple[float, float, float],
    values: str,
    variant: str,
) -> float:
    size, alpha, beta = case
    t = TopicModel(*size)
    found = function(t, alpha, beta, *p, values=values, variant=variant)
    return abs(found - loss_by_words(t, alpha, beta, p, values, attends=variant == "mask"))


@pytest.mark.parametrize("values", ["block", "diagonal"])
@pytest.mark.parametrize("variant", ["mask", "nomask"])
@pytest.mark.parametrize("p", MASKS)
@pytest.mark.parametrize("case", CASES)
def test_loss_agrees_with_attention_over_words(
    case: Any, p: tuple[float, float, float], variant: str, values: str
) -> None:
    assert error(attention_loss, case, p, values, variant) < 1e-13


def test_loss_of_uniform_attention_includes_the_mask_token() -> None:
    """The published loss with attention to [MASK] holds for uniform attention only if the sum includes [MASK]."""
    t, p = TopicModel(4, 3, 2), MASKS[1]
    for values in ("block", "diagonal"):
        exact = attention_loss(t, 1, 1, *p, values=values, variant="mask")
        assert exact == pytest.approx(loss_by_words(t, 1, 1, p, values, True), abs=1e-13)
        assert attention_loss(t, 1, 1, *p, values=values) != pytest.approx(exact, abs=1e-5)


def test_minima_agree_with_published_values() -> None:
    for tau, block, diagonal in (
        (20, 0.1997035, 0.11666),
        (40, 0.1997515, 0.12857),
        (60, 0.1997843, 0.13750),
        (80, 0.1998090, 0.14444),
    ):
        t = TopicModel(100, 300, tau)
        gamma, same = optimal_attention(t, BERT)
        assert gamma == same
        assert attention_loss(t, gamma, gamma) == pytest.approx(block, abs=5e-8)
        alpha, beta = optimal_attention(t, BERT, "diagonal")
        assert attention_loss(t, alpha, beta, values="diagonal") == pytest.approx(diagonal, abs=1e-5)
        bounds = attention_bounds(t, BERT)
        assert bounds.low < gamma < bounds.high
        bounds = attention_bounds(t, BERT, "diagonal")
        assert bounds.low < beta < bounds.high
        assert alpha < bounds.ratio * beta


@pytest.mark.parametrize(("variant", "limit"), [("printed", 6.52), ("nomask", 6.52), ("mask", 7.41)])
def test_optima_approach_leading_order_asymptotics(variant: Any, limit: float) -> None:
    t = TopicModel(1000**2, 20, 1000)
    bounds = attention_bounds(t, BERT, "block", variant)
    assert bounds.optimum / 1000 == pytest.approx(limit, abs=0.01)
    assert optimal_attention(t, BERT, "block", variant)[0] / bounds.optimum == pytest.approx(1, abs=0.03)
    bounds = attention_bounds(t, BERT, "diagonal", variant)
    alpha, beta = optimal_attention(t, BERT, "diagonal", variant)
    assert beta / bounds.optimum == pytest.approx(1, abs=0.03)
    assert alpha < 1e-4 * beta
    assert attention_loss(t, alpha, beta, values="diagonal", variant=variant) == pytest.approx(
        bounds.loss, abs=2e-4
    )


def test_loss_broadcasts_over_arrays() -> None:
    t, axis = TopicModel(100, 300, 20), np.logspace(-4, 7, 200)
    landscape = attention_loss(t, axis[:, None], axis)
    assert landscape.shape == (200, 200)
    assert landscape[50, 70] == attention_loss(t, axis[50], axis[70])
    tensor = attention_loss(t, torch.tensor(axis)[:, None], torch.tensor(axis))
    assert np.array_equal(tensor.numpy(), landscape)
    assert type(attention_loss(t, 1, 2)) is float


test_invalid_input_raises_a_one_line_error = refusals(
    "^{}",
    [
        (lambda t: attention_loss(t, -1.0, 1.0), "alpha=-1.0: give weights"),
        (lambda t: attention_loss(t, 1.0, [1.0, math.inf]), "beta=inf: give weights"),
        (lambda t: attention_loss(TopicModel(3, 2, 3), 1, 1), "topics_per_document=3: with all 3 topics"),
        (lambda t: attention_bounds(TopicModel(9, 4, 2), BERT, "diagonal"), "words_per_topic=4: lambda_4"),
        (lambda t: attention_bounds(t, BertMasking(p_random=0.0)), "p_random=0.0: without random"),
    ],
    TopicModel(10, 10, 3),
)
