"""Bounds of product forms: exact where the law has the form, ordered, and below what training reaches."""

import pytest

from mutants.modules import altered
from trialogue.data import ManyBody
from trialogue_lab.theory import product_forms
from trialogue_lab.theory.product_forms import product_form_bound
from trialogue_lab.training.population import MaskedPopulation


def population(order: int) -> MaskedPopulation:
    law = ManyBody.random(4, 2, order=order, scale=2.0, seed=1)
    return MaskedPopulation(law.probabilities().view([2] * 4))


@pytest.mark.parametrize("order", [2, 3])
def test_a_law_of_the_form_is_reached(order: int) -> None:
    law = population(order)
    assert product_form_bound(law, order, starts=2) == pytest.approx(law.entropy, abs=1e-4)


def test_fewer_bodies_do_worse_on_four() -> None:
    law = population(4)
    two, three = (product_form_bound(law, order, starts=2) for order in (2, 3))
    assert two > three + 0.01 > law.entropy + 0.02


def test_a_start_that_is_not_minimised_is_no_bound() -> None:
    broken = altered(
        product_forms, ("_STEPS = 50", "_STEPS = 1"), ("_ROUNDS = 40", "_ROUNDS = 0"), compiled=False
    )
    law = population(2)
    assert broken["product_form_bound"](law, 2, starts=2) > law.entropy + 0.01
