"""Tests of resampling by weight against an enumeration of draws and against sequential Monte Carlo."""

import itertools
import math

import numpy as np
import pytest

from one_line_errors import refusals
from trialogue.data import Table
from trialogue.randomness import numpy_generator
from trialogue.samplers import MaskedDecoding, SequentialMonteCarlo
from trialogue.samplers.exact import exact_distribution
from trialogue_lab.theory.resampling import resampled_distribution


def enumerate_distribution(q, w, number):
    distribution = np.zeros(len(q))
    for draws in itertools.product(range(len(q)), repeat=number):
        weights = w[list(draws)]
        for x, weight in zip(draws, weights, strict=True):
            if weight:
                distribution[x] += math.prod(q[list(draws)]) * weight / weights.sum()
    return distribution


CASES = {
    "similar weights": ([0.7, 0.2, 0.1], [1 / 7, 1.5, 6.0]),
    "weights of different magnitude": ([0.6, 0.3, 0.1], [1e-9, 1.0, 1e6]),
    "equal weights": ([0.5, 0.25, 0.25], [2.0, 2.0, 2.0]),
    "a zero weight": ([0.5, 0.25, 0.25], [0.0, 2.0, 1.0]),
    "zero probability": ([0.0, 0.5, 0.5], [9.0, 2.0, 1.0]),
}


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize(("q", "w"), CASES.values(), ids=CASES)
def test_distribution_agrees_with_enumeration_of_draws(q, w, number):
    q, w = np.array(q), np.array(w)
    exact, distribution = enumerate_distribution(q, w, number), resampled_distribution(q, w, number)
    assert np.abs(distribution - exact).max() < 1e-13
    # Another number of draws or inverted weights must give another distribution.
    if number > 1 and len(set(w[(q > 0) & (w > 0)])) > 1:
        assert np.abs(resampled_distribution(q, w, number + 1) - exact).max() > 1e-10
        inverse = np.divide(1, w, where=w > 0, out=w * 0)
        assert np.abs(resampled_distribution(q, inverse, number) - exact).max() > 1e-3


def test_failed_particles_have_weight_zero():
    q = np.array([0.3, 0.2])
    distribution = resampled_distribution(q, [1.0, 4.0], 3)
    assert distribution.sum() == pytest.approx(1 - 0.5**3, abs=1e-13)
    with_zero_weight = resampled_distribution([*q, 0.5], [1.0, 4.0, 0.0], 3)
    assert np.abs(distribution - with_zero_weight[:2]).max() < 1e-14


def test_particles_without_resampling_steps_have_this_distribution():
    oracle = Table(lambda x: numpy_generator(3, x).dirichlet([1.0, 1.0]).tolist(), 2, max_length=4)

    def even(prefix: tuple[int, ...]) -> bool:
        return len(prefix) < 4 or sum(prefix) % 2 == 0

    masked = exact_distribution(MaskedDecoding(), oracle, even)
    outputs = list(masked.probabilities)
    q = np.array(list(masked.probabilities.values()))
    w = np.array([masked.weights[x] for x in outputs]) / q
    for number in (1, 2, 3):
        exact = exact_distribution(SequentialMonteCarlo(number, 0.0, "mask"), oracle, even)
        sampled = np.array([exact.probabilities[x] for x in outputs])
        assert np.abs(resampled_distribution(q, w, number) - sampled).max() < 1e-12
        assert np.abs(resampled_distribution(q, w, number + 1) - sampled).max() > 1e-3


test_errors_name_the_invalid_argument = refusals(
    "{}",
    [
        (lambda: resampled_distribution([0.5, 0.6], [1, 1], 2), "proposal=1.1"),
        (lambda: resampled_distribution([0.5, 0.5], [1, math.inf], 2), "weights="),
        (lambda: resampled_distribution([0.5, 0.5], [1], 2), "weights=1"),
    ],
)
