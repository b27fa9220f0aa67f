"""Tests of gradient flow against automatic differentiation, Gaussian quadrature and closed forms."""

import itertools
import math

import numpy as np
import pytest
import torch

from one_line_errors import refusals
from trialogue.randomness import generator
from trialogue_lab.theory.gradient_flow import GaussianFlow, SampleFlow, Weights, growth_rate, integrate

SIZE = 3


def random_normal(*shape, seed=0):
    return torch.randn(shape, generator=generator(seed, "flow"), dtype=torch.float64)


def covariance(seed=0):
    root = random_normal(SIZE + 1, SIZE + 1, seed=seed)
    return root @ root.T / SIZE + 0.3 * torch.eye(SIZE + 1, dtype=torch.float64)


def quadrature(matrix, nodes=4):
    """Return points (n, L + 1) and weights that are exact for Gaussian polynomials of degree 2 * nodes - 1."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    size = len(matrix)
    grid = torch.tensor(list(itertools.product(points, repeat=size)))
    mass = torch.tensor(list(itertools.product(weights / math.sqrt(2 * math.pi), repeat=size))).prod(1)
    return grid @ torch.linalg.cholesky(matrix).T, mass


WEIGHTS = Weights(random_normal(SIZE, seed=5), random_normal(SIZE, SIZE, seed=6))


def loss(last, first, target, others, mass):
    prediction = (others + (others @ first.T).square()) @ last
    return ((target - prediction).square() * mass).sum() / 2


def test_flow_on_samples_is_the_negative_gradient():
    samples = random_normal(20, SIZE + 1, seed=1)
    last, first = (part.clone().requires_grad_() for part in WEIGHTS)
    loss(
        last, first, samples[:, 0], samples[:, 1:], torch.full((20,), 1 / 20, dtype=torch.float64)
    ).backward()
    flow = SampleFlow(samples[:, 0], samples[:, 1:])(WEIGHTS)
    torch.testing.assert_close(flow.last, -last.grad, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(flow.first, -first.grad, rtol=1e-12, atol=1e-12)


def gaussian_error(flow_class) -> float:
    matrix = covariance()
    points, mass = quadrature(matrix)
    last, first = (part.clone().requires_grad_() for part in WEIGHTS)
    loss(last, first, points[:, 0], points[:, 1:], mass).backward()
    flow = flow_class(matrix)(WEIGHTS)
    return max(float((flow[0] + last.grad).abs().max()), float((flow[1] + first.grad).abs().max()))


def test_gaussian_moments_agree_with_quadrature():
    assert gaussian_error(GaussianFlow) < 1e-10
    points, mass = quadrature(covariance())
    expected = float(loss(*WEIGHTS, points[:, 0], points[:, 1:], mass))
    assert GaussianFlow(covariance()).loss(WEIGHTS) == pytest.approx(expected, rel=1e-12)


def test_first_layer_stays_zero_and_last_layer_follows_the_closed_form():
    flow = GaussianFlow(covariance())
    start = random_normal(SIZE, seed=8)
    times = torch.tensor([0.0, 0.7, 3.0, 40.0])
    for time, weights in zip(
        times, integrate(flow, Weights(start, torch.zeros(SIZE, SIZE)), times), strict=True
    ):
        assert float(weights.first.abs().max()) == 0
        torch.testing.assert_close(
            weights.last, flow.two_body_solution(start, float(time)), rtol=0, atol=1e-8
        )
    torch.testing.assert_close(flow.two_body_solution(start, 1e3), flow.fixed_point(), rtol=0, atol=1e-10)


def skewed(size=200_000):
    """Return a linear target and independent tokens with a skewed distribution, gamma(1) - 1."""
    others = -torch.log(torch.rand(size, SIZE, generator=generator(3, "skewed"), dtype=torch.float64)) - 1
    return others @ torch.tensor([1.0, -0.5, 0.3], dtype=torch.float64), others


def test_first_layer_grows_at_the_rate_of_the_stability_matrix():
    flow = SampleFlow(*skewed(2000))
    last = torch.tensor([0.4, -0.6, 0.2], dtype=torch.float64)
    matrix = flow.stability_matrix(last)
    expected = growth_rate(last, matrix)
    assert expected > 0
    small = 1e-6 * random_normal(SIZE, SIZE, seed=2)
    # At B = 0 the flow of B is linear. The power method with fixed `last` finds its largest rate.
    state, step = small, 0.01
    for _ in range(4000):
        state = state + step * flow(Weights(last, state)).first
        size = float(state.norm())
        state = state * (1e-6 / size)
    assert math.log(size / 1e-6) / step == pytest.approx(expected, rel=0.02)


test_errors_name_the_invalid_argument = refusals(
    "^{}=",
    [
        ("covariance", lambda: GaussianFlow(torch.tensor([[1.0, 2.0], [2.0, 1.0]]))),
        ("covariance", lambda: GaussianFlow(torch.tensor([[1.0, 0.2], [0.1, 1.0]]))),
        ("others", lambda: SampleFlow(torch.ones(3), torch.ones(2, 3))),
        (
            "start",
            lambda: integrate(
                GaussianFlow(covariance()), Weights(torch.ones(2), torch.ones(3, 3)), torch.ones(1)
            ),
        ),
        ("times", lambda: integrate(GaussianFlow(covariance()), WEIGHTS, torch.tensor([1.0, 0.5]))),
    ],
)
