"""Tests of bounds of product forms: exact cases, order of the bounds, and a wrong minimisation."""

import pytest

from trialogue.data import ManyBody
from trialogue_lab.theory.product_forms import product_form_bound
from trialogue_lab.training.population import MaskedPopulation


def population(order: int) -> MaskedPopulation:
    model = ManyBody.random(4, 2, order=order, scale=2.0, seed=1)
    return MaskedPopulation(model.probabilities().view([2] * 4))


@pytest.mark.parametrize("order", [2, 3])
def test_bound_equals_the_entropy_if_the_distribution_has_the_form(order: int) -> None:
    target = population(order)
    assert product_form_bound(target, order, starts=2) == pytest.approx(target.entropy, abs=1e-4)


def test_lower_orders_have_larger_bounds_on_four_body_interactions() -> None:
    target = population(4)
    two, three = (product_form_bound(target, order, starts=2) for order in (2, 3))
    assert two > three + 0.01 > target.entropy + 0.02
