"""The law of a draw by weight: against every outcome of the draws, and against the walk that does so."""

import itertools
import math

import numpy as np
import pytest

from trialogue.data import Table
from trialogue.errors import InputError
from trialogue.randomness import numpy_generator
from trialogue.samplers import MaskedDecoding, SequentialMonteCarlo
from trialogue.samplers.exact import exact_distribution
from trialogue_lab.theory.resampling import resampled_distribution


def enumerated(q, w, number):
    law = np.zeros(len(q))
    for drawn in itertools.product(range(len(q)), repeat=number):
        weights = w[list(drawn)]
        for x, weight in zip(drawn, weights, strict=True):
            if weight:
                law[x] += math.prod(q[list(drawn)]) * weight / weights.sum()
    return law


CASES = {
    "of like size": ([0.7, 0.2, 0.1], [1 / 7, 1.5, 6.0]),
    "of many sizes": ([0.6, 0.3, 0.1], [1e-9, 1.0, 1e6]),
    "equal": ([0.5, 0.25, 0.25], [2.0, 2.0, 2.0]),
    "some zero": ([0.5, 0.25, 0.25], [0.0, 2.0, 1.0]),
    "drawn with probability zero": ([0.0, 0.5, 0.5], [9.0, 2.0, 1.0]),
}


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize(("q", "w"), CASES.values(), ids=CASES)
def test_it_is_that_of_all_draws(q, w, number):
    q, w = np.array(q), np.array(w)
    exact, law = enumerated(q, w, number), resampled_distribution(q, w, number)
    assert np.abs(law - exact).max() < 1e-13
    # Mutants: one draw more, and weights turned round.
    if number > 1 and len(set(w[(q > 0) & (w > 0)])) > 1:
        assert np.abs(resampled_distribution(q, w, number + 1) - exact).max() > 1e-10
        assert (
            np.abs(resampled_distribution(q, np.divide(1, w, where=w > 0, out=w * 0), number) - exact).max()
            > 1e-3
        )


def test_what_fails_has_no_weight():
    q = np.array([0.3, 0.2])
    law = resampled_distribution(q, [1.0, 4.0], 3)
    assert law.sum() == pytest.approx(1 - 0.5**3, abs=1e-13)
    whole = resampled_distribution([*q, 0.5], [1.0, 4.0, 0.0], 3)
    assert np.abs(law - whole[:2]).max() < 1e-14


def test_particles_that_are_never_resampled_are_drawn_so():
    oracle = Table(lambda x: numpy_generator(3, x).dirichlet([1.0, 1.0]).tolist(), 2, max_length=4)

    def even(prefix: tuple[int, ...]) -> bool:
        return len(prefix) < 4 or sum(prefix) % 2 == 0

    masked = exact_distribution(MaskedDecoding(), oracle, even)
    outputs = list(masked.probabilities)
    q = np.array(list(masked.probabilities.values()))
    w = np.array([masked.weights[x] for x in outputs]) / q
    for number in (1, 2, 3):
        walk = exact_distribution(SequentialMonteCarlo(number, 0.0, "mask"), oracle, even)
        run = np.array([walk.probabilities[x] for x in outputs])
        assert np.abs(resampled_distribution(q, w, number) - run).max() < 1e-12
        assert np.abs(resampled_distribution(q, w, number + 1) - run).max() > 1e-3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (([0.5, 0.6], [1, 1], 2), "proposal=1.1"),
        (([0.5, 0.5], [1], 2), "weights=1"),
    ],
)
def test_bad_input_is_named(arguments, told):
    with pytest.raises(InputError, match=told):
        resampled_distribution(*arguments)
