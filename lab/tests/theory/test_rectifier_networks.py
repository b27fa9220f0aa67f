"""Tests of small ReLU networks against the functions they compute, and of two printed formulas that are wrong."""

import itertools

import pytest
import torch

from refusals import expect_error
from trialogue.randomness import generator
from trialogue_lab.theory.rectifier_networks import (
    ReluNetworks,
    entry_by_index,
    index_of_entry,
    interpolate,
    linear_map,
    network_by_index,
    separating_basis,
)

GENERATOR = generator(0, "rectifier networks")


def gaussian(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR, dtype=torch.float64)


def test_interpolation_takes_the_values_at_the_points():
    points, values, direction = gaussian(8, 3), gaussian(8), gaussian(3)
    torch.testing.assert_close(interpolate(points, points, values, direction), values)
    torch.testing.assert_close(interpolate(points[:1], points[:1], values[:1], direction), values[:1])
    assert not torch.allclose(interpolate(points.roll(1, 0), points, values, direction), values)
    expect_error("^direction=", interpolate, points, points, values, torch.zeros(3, dtype=torch.float64))


def test_projection_on_the_basis_changes_every_vector():
    vectors, direction = gaussian(10, 6), gaussian(6)
    basis = separating_basis(vectors, direction)
    torch.testing.assert_close(basis @ basis.T, torch.eye(4, dtype=torch.float64))
    assert float(basis.sum(1).abs().max()) < 1e-12
    assert float((vectors @ basis.T @ basis - vectors).norm(dim=1).min()) > 1e-3
    expect_error("^direction=", separating_basis, vectors, torch.ones(6, dtype=torch.float64))


def test_entries_are_selected_by_their_index():
    for index in range(1, 6):
        x = torch.rand(50, 5, generator=GENERATOR, dtype=torch.float64) * 3
        found = entry_by_index(x, torch.full((50,), index), 3.0)
        torch.testing.assert_close(found, x[:, index - 1])
    assert not torch.allclose(entry_by_index(x, torch.full((50,), 1), 1.0), x[:, 0])  # M is too small


def test_index_of_an_entry_is_found_but_not_by_the_printed_formula():
    for n, place in itertools.product((1, 4), (0, 3)):
        if place < n:
            x = torch.zeros(n, dtype=torch.float64)
            x[place] = 2.5
            assert float(index_of_entry(x, 2.0)) == place + 1
            assert float(index_of_entry(x, 2.0, printed=True)) == place + 1 + n * (n + 1) / 2


@pytest.mark.parametrize("count", [1, 2, 5])
def test_networks_are_selected_by_their_index_but_not_by_the_printed_formula(count):
    networks = ReluNetworks(gaussian(count, 3, 2), gaussian(count, 3), gaussian(count, 3), gaussian(count))
    x = torch.rand(40, 2, generator=GENERATOR, dtype=torch.float64)
    largest = max(1.0, float(networks.inner(x).abs().max()))
    outputs = networks(x)
    errors = []
    for place in range(count):
        index = torch.full((40,), place + 1, dtype=torch.float64)
        torch.testing.assert_close(network_by_index(networks, x, index, largest), outputs[:, place])
        printed = network_by_index(networks, x, index, largest, printed=True)
        errors.append(float((printed - outputs[:, place]).abs().max()))
    assert (max(errors) > 0.1) == (count > 1)


def test_linear_maps_are_networks_with_two_layers():
    weights = gaussian(3, 4)
    weights *= 2 / torch.linalg.matrix_norm(weights, 2)
    first, second = linear_map(weights)
    x = gaussian(30, 4)
    torch.testing.assert_close((x @ first.T).relu() @ second.T, x @ weights.T)
    norms = [float(torch.linalg.matrix_norm(each, 2)) for each in (first, second)]
    assert norms == pytest.approx([2**0.5, 2 * 2**0.5])
