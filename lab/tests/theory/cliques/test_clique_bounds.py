"""Tests of Propositions 4.1.4, 4.1.5 and 4.3.3 and Corollary 4.1.1 against exact Markov chains."""

import math

import numpy as np
import pytest
import torch

from one_line_errors import refusals
from trialogue.data.ising.model import Ising
from trialogue.randomness import numpy_generator
from trialogue_lab.theory.cliques.bounds import (
    clique_assumption,
    compare_modes,
    hitting_bound,
    one_step_corollary,
    smallest_parameters,
    stuck_bound,
)
from trialogue_lab.theory.cliques.chains import (
    block_chain,
    escape_probability,
    hitting_probability,
    parallel_chain,
)


def smallest_stuck_probability(clique, coupling, field, steps):
    """Return the smallest probability that sum_C x_i <= -2 at every step, over all starts that satisfy it."""
    return 1 - escape_probability(parallel_chain(clique, coupling, field), (clique - 2) // 2, steps).max()


def test_hitting_bound_holds_for_random_parameters_and_step_count_is_minimal():
    draws = numpy_generator(0, "grid")
    for _ in range(30):
        clique = int(draws.integers(2, 8))
        sites = clique + int(draws.integers(0, 5))
        size = int(draws.integers(clique, sites + 1))
        excess, field, delta = draws.uniform(0.01, 1), draws.uniform(0.001, 0.5), draws.uniform(0.05, 0.9)
        bound = hitting_bound(sites, clique, size, excess, clique * field, delta)
        chain = block_chain(sites, clique, excess + clique * field, field, size)
        assert np.exp(chain[:, -1]).min() >= bound.rate
        assert hitting_probability(chain, bound.steps).min() >= 1 - delta
        # The number of steps is minimal: one step less is not enough at the rate of the bound.
        assert (1 - bound.rate) ** bound.steps <= delta * (1 + 1e-9)
        assert bound.steps == 1 or (1 - bound.rate) ** (bound.steps - 1) > delta


def test_hitting_bound_is_finite_if_2_to_the_clique_size_overflows():
    """A clique of all 5000 sites, with J_0 that compensates 2^{|C|}, has the rate 1 / (2 + e^{-2 h_G})."""
    bound = hitting_bound(5000, 5000, 5000, 5000 * math.log(2) / 2 - 1.0, 1.0)
    assert bound.rate == pytest.approx(1 / (2 + math.exp(-2)), rel=1e-9)
    assert bound.steps == 2


def test_stuck_probabilities_agree_with_published_values():
    bound = stuck_bound(10, 2.0, 0.5)
    assert (bound.exponent, bound.steps) == (pytest.approx(2.919, abs=6e-4), 4)
    assert smallest_stuck_probability(10, 2.0 + 0.1, 0.01, 4) == pytest.approx(1.0, abs=5e-5)
    assert stuck_bound(8, 1.0, 0.74).steps == 1
    assert smallest_stuck_probability(8, 1.0 + 0.08, 0.01, 1) == pytest.approx(0.9994, abs=5e-5)


def test_the_two_modes_have_the_largest_probabilities():
    draws = numpy_generator(0, "modes")
    for _ in range(25):
        clique = int(draws.integers(2, 6))
        sites = clique + int(draws.integers(0, 7 - clique))
        field = draws.uniform(-0.3, 0.3, sites)
        field[0] += np.abs(field).sum() + 0.1
        coupling = np.abs(field).sum() + draws.uniform(0.01, 0.5)
        model = Ising.clique(sites, clique, coupling=float(coupling), field=torch.tensor(field))
        order = compare_modes(model)
        assert order.up_over_down > 0
        assert order.down_over_rest > -1e-12
        assert order.flip_residual < 1e-12


def test_clique_assumption_returns_the_parameters_of_a_model():
    model = Ising.clique(5, 3, coupling=1.0, field=torch.tensor([0.1, 0.2, 0.1, -0.05, 0.1]))
    assert clique_assumption(model) == (5, 3, pytest.approx(0.45), pytest.approx(0.4))


GIVEN = {"delta": 0.1, "steps": 100}
NEEDED = smallest_parameters(75, **GIVEN)


test_violated_assumptions_are_rejected = refusals(
    "{}",
    [
        (lambda: clique_assumption(Ising.clique(10, 4, coupling=4.0, field=5.0)), "must sum to more than 30"),
        (lambda: clique_assumption(Ising.clique(4, 4, coupling=0.3, field=0.0)), "must sum to more than 0"),
        (lambda: clique_assumption(Ising(torch.zeros(3, 3), torch.ones(3))), "one clique"),
        (lambda: hitting_bound(5, 3, 2, 0.5, 0.1), "from clique=3 to sites=5"),
        (lambda: hitting_bound(10_000, 2000, 2000, 1.0, 1.0), "below double precision"),
        (lambda: stuck_bound(2, 50.0), "^clique=2: .* use at least 3"),
        (lambda: one_step_corollary(75, 74, 75, 30.0, 3.0, **GIVEN), "clique=74"),
        (
            lambda: one_step_corollary(15000, 75, 14994, NEEDED.excess, NEEDED.clique_field, **GIVEN),
            "^block_size=",
        ),
        (lambda: one_step_corollary(75, 75, 75, 30.0, 2.0, **GIVEN), "clique_field"),
    ],
)
