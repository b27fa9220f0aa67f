"""Exact distributions with merged states: states with the same future are one state."""

from itertools import pairwise

import pytest

from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers import MaskedDecoding, SequentialMonteCarlo, WeightedRejection
from trialogue.samplers.exact import exact_distribution, kullback_leibler, total_variation

PARTICLES = {"oracle": 2, "mask": 3, "rejection": 2}
"""Number of particles per proposal. Rejected draws multiply the number of branches."""


def skewed(prefix: tuple[int, ...]) -> list[float]:
    return numpy_generator(7, prefix).dirichlet([1.0, 1.0]).tolist()


ORACLE = Table(skewed, 2, max_length=4)


def is_accepted(prefix: tuple[int, ...]) -> bool:
    """Return whether no ones are adjacent and the last token equals the first."""
    return (1, 1) not in pairwise(prefix) and (len(prefix) < 4 or prefix[0] == prefix[-1])


class UnsortedParticles(SequentialMonteCarlo):
    def arranged(self, tokens, lengths, state):
        return tokens, lengths, state


class UnsortedWeights(SequentialMonteCarlo):
    """A faulty sampler that sorts the particles but not their weights."""

    def arranged(self, tokens, lengths, state):
        return *super().arranged(tokens, lengths, state)[:2], state


def difference(sampler, other) -> float:
    """Return the largest difference of two samplers in outputs, weights and expected calls."""
    first, second = (exact_distribution(each, ORACLE, is_accepted) for each in (sampler, other))
    weights = [abs(first.weights.get(x, 0.0) - second.weights.get(x, 0.0)) for x in second.weights]
    outputs = total_variation(first.probabilities, second.probabilities)
    return max(outputs, *weights, abs(first.expected_calls - second.expected_calls))


@pytest.mark.parametrize("proposal", PARTICLES)
@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_the_order_of_particles_is_not_part_of_the_state(proposal, threshold):
    settings = (PARTICLES[proposal], threshold, proposal)
    assert difference(SequentialMonteCarlo(*settings), UnsortedParticles(*settings)) < 1e-12


def test_a_faulty_arrangement_is_detected():
    settings = (3, 0.7, "mask")
    assert difference(UnsortedWeights(*settings), UnsortedParticles(*settings)) > 1e-3


def test_sorting_particles_reduces_the_number_of_states():
    sorted_, unsorted = (
        exact_distribution(sampler(3, 0.7, "mask"), ORACLE, is_accepted)
        for sampler in (SequentialMonteCarlo, UnsortedParticles)
    )
    assert sorted_.states < unsorted.states / 2


def test_a_common_factor_of_all_weights_is_not_part_of_the_state():
    """Weighted rejection has one state per prefix, although its estimates depend on the rejected tokens."""
    masked, drawn = (
        exact_distribution(sampler, ORACLE, is_accepted)
        for sampler in (MaskedDecoding(), WeightedRejection())
    )
    assert drawn.states == masked.states == 1 + 2 + 3 + 5 + 4
    assert total_variation(drawn.probabilities, masked.probabilities) < 1e-12
    assert drawn.weights == pytest.approx(masked.weights, abs=1e-12)
    total = sum(masked.weights.values())
    restricted = {x: weight / total for x, weight in masked.weights.items()}
    assert total_variation(restricted, masked.probabilities) > 0.01


def test_the_divergence_includes_missing_outcomes():
    fair, skew = {(0,): 0.5, (1,): 0.5}, {(0,): 0.75, (1,): 0.25}
    assert kullback_leibler(fair, fair) == 0
    assert kullback_leibler(skew, fair) == pytest.approx(0.130812, abs=1e-6)
    assert kullback_leibler(fair, skew) == pytest.approx(0.143841, abs=1e-6)
    assert kullback_leibler({(0,): 0.5}, fair) == float("inf")
    assert kullback_leibler(fair, {(0,): 1.0}) == float("inf")
    assert kullback_leibler({(0,): 1.0}, fair) == pytest.approx(0.693147, abs=1e-6)
