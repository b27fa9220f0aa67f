"""Tests of stationary distributions, Poincaré constants and mixing times against closed forms and brute force."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from one_line_errors import refusals
from refusals import expect_error
from theory.random_models import SIX_BLOCKS, random_ising, random_simplex, reversibility_gap
from trialogue.data.ising.model import Ising
from trialogue.samplers import Gibbs
from trialogue.samplers.exact import transition_matrix
from trialogue_lab.theory.masking import mixing
from trialogue_lab.theory.masking.block_laws import block_distribution, block_dynamics, joint_block_dynamics


def dynamics(model, **arguments):
    return block_dynamics(model.probabilities(), block_distribution(model.sites, 2, **arguments))


@pytest.mark.parametrize(
    ("coupling", "expected"), [(0.05, [4.7009, 2.2336, 1.4112, 1.0]), (0.3, [14.6987, 5.5516, 2.5172, 1.0])]
)
def test_poincare_constants_agree_with_published_values(coupling, expected):
    model = Ising.clique(4, 4, coupling=coupling, field=0.0)
    found = [mixing.poincare_constant(dynamics(model, block_size=k)) for k in range(1, 5)]
    assert found == pytest.approx(expected, abs=6e-5)


def two_states(a, b):
    return torch.tensor([[1 - a, a], [b, 1 - b]], dtype=torch.float64)


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.2), (1e-9, 3e-9), (0.9, 0.8)])
def test_two_state_chain_agrees_with_closed_forms(a, b):
    matrix = two_states(a, b)
    distribution = torch.tensor([b, a], dtype=torch.float64) / (a + b)
    torch.testing.assert_close(mixing.stationary_probabilities(matrix), distribution, rtol=1e-14, atol=0)
    assert mixing.poincare_constant(matrix) == pytest.approx(1 / (a + b), rel=1e-5)
    # TV from state x is mu(other) |1 - a - b|^t.
    steps = math.ceil(math.log(0.25 / float(distribution.max())) / math.log(abs(1 - a - b)))
    assert mixing.mixing_time(matrix) == pytest.approx(steps, rel=1e-6)


def test_stationary_distribution_has_precise_small_probabilities():
    """The stationary distribution of this birth-death chain spans 60 orders of magnitude."""
    ratio, size = 1e-6, 11
    matrix = np.zeros((size, size))
    for state in range(size - 1):
        matrix[state, state + 1], matrix[state + 1, state] = 0.4 * ratio, 0.4
    matrix[np.diag_indices(size)] = 1 - matrix.sum(1)
    distribution = mixing.stationary_probabilities(matrix)
    np.testing.assert_allclose(distribution[1:] / distribution[:-1], ratio, rtol=1e-9)


@pytest.mark.parametrize("field", [30.0, 100.0, 200.0])
def test_constants_are_finite_if_probabilities_underflow(field):
    """Four nearly independent spins in a field have C = 4 and mix in ten steps, although p(- - - -) underflows."""
    model = Ising.clique(4, 4, coupling=0.3, field=field)
    matrix = transition_matrix(Gibbs(), model)
    torch.testing.assert_close(
        mixing.stationary_probabilities(matrix), model.probabilities(), rtol=1e-10, atol=0
    )
    assert mixing.poincare_constant(matrix) == pytest.approx(4, rel=1e-12)
    assert mixing.mixing_time(matrix) == powers_until_mixed(matrix, 0.25) == 10


def test_transient_states_have_probability_zero():
    matrix = [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]]
    assert mixing.stationary_probabilities(matrix).tolist() == pytest.approx([0, 1 / 3, 2 / 3])
    assert mixing.poincare_constant(matrix) == pytest.approx(1 / 0.75)


def powers_until_mixed(matrix, eps):
    distribution, power = mixing.stationary_probabilities(matrix), torch.eye(len(matrix), dtype=torch.float64)
    for step in range(10_000):
        if float((power - distribution).abs().sum(1).max()) / 2 <= eps:
            return step
        power = power @ matrix
    raise AssertionError


@pytest.mark.parametrize("eps", [0.25, 1e-6])
@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_mixing_time_agrees_with_matrix_powers(block_size, eps):
    matrix = dynamics(Ising.clique(4, 3, coupling=0.4, field=0.1), block_size=block_size)
    assert mixing.mixing_time(matrix, eps=eps) == powers_until_mixed(matrix, eps)


def test_mixing_time_includes_equality_up_to_rounding():
    """The exact distance after one step is 1/4, and the computed distance differs by rounding."""
    square = torch.tensor([[2, 1, 1, 0], [1, 2, 0, 1], [1, 0, 2, 1], [0, 1, 1, 2]]) / 4
    assert mixing.mixing_time(square) == 1
    free = Ising.clique(2, 2, coupling=0.0, field=0.0)
    assert mixing.mixing_time(transition_matrix(Gibbs(), free)) == 1
    assert mixing.mixing_time(square, eps=0.25 * (1 - 1e-9)) == 2


def test_mixing_time_of_an_irreversible_chain_agrees_with_matrix_powers():
    matrix = random_simplex(6, 6, names="rows") * 0.1 + 0.9 * torch.eye(6, dtype=torch.float64).roll(1, 0)
    assert reversibility_gap(matrix, mixing.stationary_probabilities(matrix)) > 1e-3
    assert mixing.mixing_time(matrix) == powers_until_mixed(matrix, 0.25)


def test_poincare_constant_is_the_supremum_of_variance_ratios():
    """For an irreversible chain, the largest ratio found by optimisation equals the constant."""
    matrix = random_simplex(5, 5, names="sup")
    distribution = mixing.stationary_probabilities(matrix)

    def minus_ratio(values):
        f = torch.tensor(values)
        return -float(distribution @ (f - distribution @ f) ** 2) / mixing.dirichlet_form(matrix, f, f)

    found = [
        -minimize(minus_ratio, start).fun for start in random_simplex(5, 5, names="starts").numpy() - 0.2
    ]
    assert max(found) == pytest.approx(mixing.poincare_constant(matrix), rel=1e-6)


def test_dirichlet_form_agrees_with_squared_differences():
    model = random_ising(3)
    p, matrix = model.probabilities(), dynamics(model, block_size=2)
    f, g = random_simplex(2, 8)
    differences = (f[:, None] - f) * (g[:, None] - g)
    expected = float((p[:, None] * matrix * differences).sum() / 2)
    assert mixing.dirichlet_form(matrix, f, g) == pytest.approx(expected, abs=1e-15)
    assert mixing.dirichlet_form(matrix, f, g, p) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("adaptive", [False, True])
def test_block_dirichlet_form_agrees_with_the_joint_chain(adaptive):
    blocks = [block for block in SIX_BLOCKS if max(block) < 3] + [(0, 1, 2), (1,)]
    arguments = {"distribution": random_simplex(8, 5)} if adaptive else {"weights": random_simplex(5)}
    distribution = block_distribution(3, 2, blocks=blocks, **arguments)
    p = random_ising(3).probabilities()
    f, g = random_simplex(8, 5, names="f"), random_simplex(8, 5, names="g")
    mass = (p[:, None] * distribution.each_state()).flatten()
    joint = mixing.dirichlet_form(joint_block_dynamics(p, distribution), f.flatten(), g.flatten(), mass)
    assert mixing.block_dirichlet_form(p, distribution, f, g) == pytest.approx(joint, abs=1e-15)
    f, g = f[:, :1].expand(8, 5), g[:, :1].expand(8, 5)
    marginal = mixing.dirichlet_form(block_dynamics(p, distribution), f[:, 0], g[:, 0])
    assert mixing.block_dirichlet_form(p, distribution, f, g) == pytest.approx(marginal, abs=1e-15)


def test_chi_square_decay_is_bounded_and_the_bound_is_attained():
    model = random_ising(3)
    matrix, times = dynamics(model, block_size=1), [0, 1, 2, 5, 20]
    decay = mixing.chi_square_decay(matrix, torch.eye(8, dtype=torch.float64)[3], times)
    assert bool((decay.values <= decay.bounds * (1 + 1e-9)).all())
    assert float(decay.values[0]) == pytest.approx(float(1 / model.probabilities()[3] - 1))
    # The slowest function attains the bound, so a smaller constant would violate it.
    scale = model.probabilities().sqrt()
    vectors = torch.linalg.eigh(scale[:, None] * matrix / scale)[1]
    slow = scale**2 + 0.01 * vectors[:, -2] * scale
    decay = mixing.chi_square_decay(matrix, slow, times)
    torch.testing.assert_close(decay.values, decay.bounds, rtol=1e-6, atol=0)


def test_chi_square_is_infinite_outside_the_support():
    half = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64)
    assert mixing.chi_square(half, half) == 0
    assert mixing.chi_square(torch.full((3,), 1 / 3), half) == math.inf


def test_joint_chain_has_no_finite_poincare_constant():
    """The chain on (X, K) never changes K, so only its marginal on X has a Poincaré constant."""
    distribution = block_distribution(2, 2, blocks=[[0], [1]], distribution=random_simplex(4, 2))
    p = random_simplex(4)
    assert mixing.poincare_constant(block_dynamics(p, distribution)) > 1
    expect_error("reducible", mixing.poincare_constant, joint_block_dynamics(p, distribution))


FLIP = two_states(1.0, 1.0)


test_invalid_input_is_rejected = refusals(
    "{}",
    [
        (lambda: mixing.mixing_time(FLIP), "periodic"),
        (lambda: mixing.mixing_time(torch.eye(3).roll(1, 0)), "transitions=3"),
        (lambda: mixing.poincare_constant(torch.eye(2)), "reducible"),
        (lambda: mixing.poincare_constant(torch.ones(1, 1)), "one recurrent state"),
        (lambda: mixing.poincare_constant(two_states(1e-11, 1e-11)), "double precision"),
        (lambda: mixing.mixing_time(torch.ones(2, 2)), "sum to one"),
        (lambda: mixing.mixing_time("Gibbs"), "transitions='Gibbs'"),
        (lambda: mixing.dirichlet_form(two_states(0.2, 0.2), torch.zeros(3), torch.zeros(2)), "f="),
    ],
)
