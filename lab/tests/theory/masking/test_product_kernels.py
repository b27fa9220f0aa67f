"""Tests of the closest product distributions, and of transitions that factorise or do not."""

import math

import numpy as np
import pytest

from one_line_errors import refusals
from theory.random_models import random_ising, random_simplex
from trialogue_lab.theory.masking import product_kernels
from trialogue_lab.theory.masking.block_laws import block_distribution, block_dynamics


def two_mode_distribution(sites):
    distribution = np.zeros((2,) * sites)
    distribution[(0,) * sites] = distribution[(1,) * sites] = 0.5
    return distribution


@pytest.mark.parametrize(("sites", "expected"), [(2, math.sqrt(2) - 1), (3, 0.4912), (4, 0.4994)])
def test_distance_of_two_modes_from_products_agrees_with_published_values(sites, expected):
    found = product_kernels.closest_in_variation(two_mode_distribution(sites), starts=1)
    assert found.distance == pytest.approx(expected, abs=1e-7 if sites == 2 else 6e-5)
    assert found.distance == pytest.approx(
        np.abs(two_mode_distribution(sites) - found.joint()).sum() / 2, abs=1e-15
    )
    # The product of the marginals is worse than one mode alone, which is worse than the best.
    marginals = product_kernels.closest_in_divergence(two_mode_distribution(sites))
    assert np.abs(two_mode_distribution(sites) - marginals.joint()).sum() / 2 >= 0.5
    assert marginals.distance == pytest.approx((sites - 1) * math.log(2))


def test_closest_product_agrees_with_a_grid_search():
    distribution = random_simplex(4, names="grid").numpy().reshape(2, 2)
    grid = np.linspace(0, 1, 201)
    products = np.einsum("xa,yb->xyab", np.stack((grid, 1 - grid), 1), np.stack((grid, 1 - grid), 1))
    best = (np.abs(products - distribution).sum((2, 3)) / 2).min()
    assert best - 0.01 < product_kernels.closest_in_variation(distribution, starts=2).distance <= best + 1e-9


def test_product_of_marginals_is_closest_in_divergence():
    distribution = random_simplex(27, names="law").numpy().reshape(3, 3, 3)
    best = product_kernels.closest_in_divergence(distribution)
    for seed in range(20):
        other = product_kernels.joint_distribution(
            0.9 * best.sites + 0.1 * random_simplex(3, 3, names=seed).numpy()
        )
        assert float((distribution * np.log(distribution / other)).sum()) > best.distance


def test_product_transitions_factorise():
    predictions = random_simplex(9, 2, 3, names="predictions").numpy()
    matrix = product_kernels.product_transitions(predictions)
    np.testing.assert_allclose(matrix.sum(1), 1, rtol=1e-14)
    gap = product_kernels.factorization_gap(matrix, 2)
    assert max(gap.divergence.max(), gap.variation.max()) < 1e-14
    assert matrix[5, 7] == pytest.approx(predictions[5, 0, 2] * predictions[5, 1, 1])


def test_joint_block_updates_do_not_factorise():
    model = random_ising(3)
    matrix = block_dynamics(model.probabilities(), block_distribution(3, 2, block_size=3)).numpy()
    gap = product_kernels.factorization_gap(matrix, 3)
    expected = product_kernels.closest_in_divergence(model.probabilities().numpy().reshape(2, 2, 2)).distance
    np.testing.assert_allclose(gap.divergence, expected, rtol=1e-10)


test_invalid_input_is_rejected = refusals(
    "^{}=",
    [
        (lambda: product_kernels.closest_in_divergence(np.ones((2, 2))), "distribution"),
        (lambda: product_kernels.product_transitions(np.ones((3, 2, 2)) / 2), "predictions"),
        (lambda: product_kernels.product_transitions(np.ones((4, 2, 2))), "predictions"),
        (lambda: product_kernels.factorization_gap(np.eye(5), 2), "sites"),
    ],
)
