"""Laws of k-body interactions: marginals met, nothing above order k, and no law of more entropy."""

import itertools

import pytest
import torch

from mutants.modules import altered
from one_line_errors import refusals
from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue_lab.theory import order_truncation
from trialogue_lab.theory.order_truncation import keep_orders, order_strengths

SITES, VOCAB = 5, 3
MANY = ManyBody.random(SITES, VOCAB, order=4, rank=8, seed=1)
LAW = MANY.probabilities().view((VOCAB,) * SITES)


def entropy(law):
    return float(-(law * law.log()).sum())


def marginals_differ(law, order):
    """By how much the marginals of so many sites differ from those of LAW."""
    return max(
        float((law.sum(left) - LAW.sum(left)).abs().max())
        for left in itertools.combinations(range(SITES), SITES - order)
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_it_has_the_marginals_and_no_interaction_above_the_order(order):
    law = keep_orders(LAW, order)
    assert float(law.sum()) == pytest.approx(1, abs=1e-14)
    assert marginals_differ(law, order) < 1e-10
    assert marginals_differ(law, order + 1) > 1e-4
    strengths = order_strengths(law.log())
    assert strengths[order] > 1e-3
    assert strengths[order + 1 :].max() < 1e-12


def test_one_body_is_the_product_and_all_bodies_are_the_law():
    product = torch.ones(())
    for site in range(SITES):
        product = product[..., None] * LAW.sum([axis for axis in range(SITES) if axis != site])
    torch.testing.assert_close(keep_orders(LAW, 1), product, rtol=1e-10, atol=0)
    torch.testing.assert_close(keep_orders(LAW, SITES), LAW, rtol=1e-14, atol=0)
    # The energy has four bodies, and so has the projection on as many.
    torch.testing.assert_close(keep_orders(LAW, 4, tolerance=1e-9), LAW, rtol=1e-4, atol=0)


def test_strengths_are_those_of_the_energy():
    shares = order_strengths(MANY.energy(MANY.states()).view((VOCAB,) * SITES)).square()
    shares[0] = 0.0
    torch.testing.assert_close(shares[:5] / shares.sum(), MANY.variance_by_order(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        ("found * (target / marginal)", "found * (target / marginal) ** 0.5 / 1.01"),
        ("np.full_like(law, 1 / law.size)", "law.copy()"),
        ("combinations(axes, order)", "list(combinations(axes, order))[1:]"),
    ],
    ids=["half a step", "begun at the law", "a marginal left out"],
)
def test_wrong_projections_are_rejected(change):
    mutant = altered(order_truncation, change, ("100_000", "200"), compiled=False)["keep_orders"]
    try:
        law = mutant(LAW, 2)
    except InputError:
        return
    assert marginals_differ(law, 2) > 1e-6 or order_strengths(law.log())[3:].max() > 1e-6


test_bad_input_is_named = refusals(
    "^{}=",
    [
        ("order", lambda: keep_orders(LAW, SITES + 1)),
        ("probabilities", lambda: keep_orders(2 * LAW, 2)),
        ("probabilities", lambda: keep_orders(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), 1)),
    ],
)
