"""Tests of the lemmas on errors of attention modules, by random and by extreme inputs, each against a smaller bound."""

import math

import pytest
import torch
from torch import Tensor

from trialogue.randomness import generator
from trialogue_lab.models.dyck_transformer.layers import FlooredNorm
from trialogue_lab.theory.attention_errors import (
    attention_error_bound,
    attention_lipschitz_bound,
    attention_module,
    composition_error_bound,
    largest_column_norm,
    softmax_error_bound,
)

FLOOR = 0.3


def gaussian(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=generator(seed, "attention errors"), dtype=torch.float64)


def unit(*shape: int, seed: int) -> Tensor:
    """Return a random matrix of spectral norm 1."""
    weights = gaussian(*shape, seed=seed)
    return weights / torch.linalg.matrix_norm(weights, 2)


def test_norm_is_over_columns():
    assert largest_column_norm(torch.tensor([[3.0, 0.0, 1.0], [4.0, 2.0, 1.0]])) == 5.0


@pytest.mark.parametrize("eps", [0.01, 0.1, 1.0, 5.0])
def test_softmax_errors_are_within_the_bound(eps):
    x = gaussian(500, 6, seed=1) * 3
    shifts = gaussian(500, 6, seed=2).sign() * eps
    errors = (x.softmax(1) - (x + shifts).softmax(1)).abs().sum(1)
    assert float(errors.max()) <= softmax_error_bound(eps)


def test_two_opposite_scores_attain_half_of_the_softmax_bound():
    eps = 1e-3
    scores = torch.tensor([[-eps / 2, eps / 2]], dtype=torch.float64)
    error = float((scores.softmax(1) - (-scores).softmax(1)).abs().sum())
    assert error == pytest.approx(2 * math.tanh(eps / 2))
    assert error == pytest.approx(softmax_error_bound(eps) / 2, rel=2e-3)


def test_floored_norm_is_lipschitz_with_the_constant_1_over_c():
    """Lemma 2.2.10 states 2 / C. A projection on a ball has the constant 1 / C, which vectors near zero attain."""
    norm = FlooredNorm(5, FLOOR, gain=False)
    x, y = gaussian(2000, 5, seed=3), gaussian(2000, 5, seed=4)
    for scale in (0.05, 0.2, 1.0):
        a, b = x * scale, x * scale + y * 0.1
        ratios = (norm(a) - norm(b)).norm(dim=1) / (a - b).norm(dim=1)
        assert float(ratios.max()) <= (1 / FLOOR) * (1 + 1e-12)
    near = torch.tensor([[0.1, -0.1, 0, 0, 0]], dtype=torch.float64)
    ratio = float(norm(near).norm() / near.norm())
    assert ratio == pytest.approx(1 / FLOOR)
    assert ratio > 0.9 / FLOOR


@pytest.mark.parametrize("seed", range(5))
def test_attention_errors_are_within_the_bound(seed):
    x, value, scores = gaussian(4, 6, seed=seed), unit(4, 4, seed=seed + 10), unit(4, 4, seed=seed + 20)
    exact = (x.T @ scores @ x).softmax(0)
    weights = (x.T @ scores @ x + 0.3 * gaussian(6, 6, seed=seed + 30)).softmax(0)
    values = value @ x + 0.1 * gaussian(4, 6, seed=seed + 40)
    weight_error = float((weights - exact).abs().sum(0).max())
    value_error = largest_column_norm(values - value @ x)
    largest = largest_column_norm(value @ x)
    before, after = values @ weights, value @ x @ exact
    error = largest_column_norm(before - after)
    assert error <= attention_error_bound(weight_error, value_error, largest)
    assert error > attention_error_bound(weight_error / 50, value_error / 50, largest)
    norm = FlooredNorm(4, FLOOR, gain=False)
    normed = largest_column_norm((norm(before.T) - norm(after.T)).T)
    assert normed <= attention_error_bound(weight_error, value_error, largest, FLOOR)


def test_attention_error_bound_is_attained():
    """One position attends to the other vector entirely, and both value vectors have the same error."""
    values = torch.tensor([[1.0, -1.0]])
    error = largest_column_norm(
        (values - 0.5) @ torch.tensor([[0.0], [1.0]]) - values @ torch.tensor([[1.0], [0.0]])
    )
    assert error == attention_error_bound(2.0, 0.5, 1.0)


def test_norm_of_padded_vectors_is_the_padded_norm():
    """Lemma 2.2.12 holds for centred vectors only, as it is stated."""
    x = gaussian(20, 3, seed=5)
    centred = x - x.mean(1, keepdim=True)
    small, wide = FlooredNorm(3, FLOOR, gain=False), FlooredNorm(7, FLOOR, gain=False)
    padding = torch.zeros(20, 4, dtype=torch.float64)
    torch.testing.assert_close(wide(torch.cat((centred, padding), 1)), torch.cat((small(x), padding), 1))
    assert not torch.allclose(wide(torch.cat((x, padding), 1))[:, :3], small(x))


@pytest.mark.parametrize("layers", [1, 2])
def test_attention_module_is_lipschitz(layers):
    largest = 0.0
    for seed in range(200):
        weights = dict(
            zip(("value", "key", "query"), (unit(4, 4, seed=9 * seed + k) for k in range(3)), strict=True)
        )
        x = gaussian(4, 5, seed=9 * seed + 3)
        x *= 4 * layers / largest_column_norm(x) * 0.999
        step = gaussian(4, 5, seed=9 * seed + 4) * 1e-4
        moved = attention_module(x + step, floor=FLOOR, **weights) - attention_module(
            x, floor=FLOOR, **weights
        )
        largest = max(largest, largest_column_norm(moved) / largest_column_norm(step))
    assert largest <= attention_lipschitz_bound(layers, FLOOR)
    assert largest > attention_lipschitz_bound(layers, FLOOR) / 1000


def test_attention_module_agrees_with_a_loop():
    x, value, key, query = (gaussian(3, 3, seed=seed) for seed in range(4))
    found = attention_module(x, value=value, key=key, query=query, floor=FLOOR)
    for i in range(3):
        weights = torch.stack([((key @ x[:, j]) @ (query @ x[:, i])).exp() for j in range(3)])
        out = sum(weights[j] / weights.sum() * (value @ x[:, j]) for j in range(3))
        centred = out - out.mean()
        torch.testing.assert_close(found[:, i], centred / max(float(centred.norm()), FLOOR))


def test_composition_bound_is_attained_and_the_printed_one_is_not_a_bound():
    """The outer function is x -> x and exact, and the inner one is 0 with the approximation 0.1 x."""
    printed = (0.0 + 0.0) * (1.0 + 0.1) - 0.0 * 1.0
    assert composition_error_bound(0.0, 0.1, 1.0, 0.0) == 0.1 > printed
    a, b, e, f = 0.7, 0.4, 0.2, 0.1
    assert (a + e) * (b + f) - a * b == pytest.approx(composition_error_bound(e, f, a, b))
