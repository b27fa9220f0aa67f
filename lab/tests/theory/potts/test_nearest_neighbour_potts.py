"""Tests of the closed form of a nearest-neighbour chain against enumeration and published values."""

import math

import pytest
import torch

from trialogue.oracles import enumerate_sequences
from trialogue_lab.theory.potts.domain_walls import stored_pattern_decay_rate
from trialogue_lab.theory.potts.nearest_neighbour import NearestNeighbourPotts


@pytest.mark.parametrize(("vocab", "coupling", "temperature"), [(3, 1.3, 0.7), (2, 0.4, 2.0), (4, 0.0, 1.0)])
@pytest.mark.parametrize("length", [1, 2, 6])
def test_closed_forms_agree_with_enumeration(vocab, coupling, temperature, length):
    chain = NearestNeighbourPotts(vocab, coupling, temperature)
    states = enumerate_sequences(vocab, length)
    walls = states[:, 1:] != states[:, :-1]
    weights = -coupling * walls.sum(1).double() / temperature
    probabilities = weights.softmax(0)
    assert chain.log_partition(length) == pytest.approx(float(weights.logsumexp(0)), abs=1e-13)
    assert chain.no_wall_probability(length) == pytest.approx(
        float(probabilities[walls.sum(1) == 0].sum()), abs=1e-14
    )
    assert chain.expected_walls(length) == pytest.approx(
        float(probabilities @ walls.sum(1).double()), abs=1e-13
    )
    runs = (walls.long().cumsum(1) == 0).sum(1) + 1
    expected = [float(probabilities[runs == run].sum()) for run in range(1, length + 1)]
    assert chain.run_length_distribution(length).tolist() == pytest.approx(expected, abs=1e-14)


def test_closed_forms_agree_with_published_values():
    chain = NearestNeighbourPotts(3, 1.3, 0.7)
    assert chain.no_wall_probability(6) == pytest.approx(0.2570041, abs=5e-8)
    assert math.exp(chain.log_partition(6)) == pytest.approx(11.67296, abs=5e-6)
    for temperature, length in ((0.2, 149), (0.3, 29.0), (0.5, 8.39), (1.0, 3.72)):
        run = 1 / NearestNeighbourPotts(2, 1.0, temperature).wall_probability
        assert run == pytest.approx(length, rel=5e-3)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 10.0])
def test_decay_rate_agrees_with_the_transfer_matrix(temperature):
    energies = 1.3 * (1 - torch.eye(4, dtype=torch.float64))
    assert NearestNeighbourPotts(4, 1.3, temperature).decay_rate == pytest.approx(
        stored_pattern_decay_rate(energies, temperature), abs=1e-12
    )


def test_chain_with_infinite_coupling_has_no_walls():
    chain = NearestNeighbourPotts(3, math.inf, 1.0)
    assert chain.no_wall_probability(10**6) == 1.0
    assert chain.expected_walls(10**6) == chain.decay_rate == 0.0
