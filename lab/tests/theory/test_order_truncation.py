"""Tests of truncation to k-body interactions against marginals and fits of log-probabilities."""

import itertools

import pytest
import torch

from one_line_errors import refusals
from trialogue.data import ManyBody
from trialogue_lab.theory.order_truncation import truncate_orders

SITES, VOCAB = 5, 3
MANY = ManyBody.random(SITES, VOCAB, order=4, rank=8, seed=1)
DISTRIBUTION = MANY.probabilities().view((VOCAB,) * SITES)


def marginal_difference(distribution, order):
    """Return the largest difference between marginals of `order` sites of two distributions."""
    return max(
        float((distribution.sum(summed) - DISTRIBUTION.sum(summed)).abs().max())
        for summed in itertools.combinations(range(SITES), SITES - order)
    )


def test_lowest_and_highest_orders_agree_with_closed_forms():
    product = torch.ones(())
    for site in range(SITES):
        product = product[..., None] * DISTRIBUTION.sum([axis for axis in range(SITES) if axis != site])
    torch.testing.assert_close(truncate_orders(DISTRIBUTION, 1), product, rtol=1e-10, atol=0)
    torch.testing.assert_close(truncate_orders(DISTRIBUTION, SITES), DISTRIBUTION, rtol=1e-14, atol=0)
    # The energy has four-body terms only, so truncation to order four changes nothing.
    torch.testing.assert_close(
        truncate_orders(DISTRIBUTION, 4, tolerance=1e-9), DISTRIBUTION, rtol=1e-4, atol=0
    )


def residual_of_order(distribution, order):
    """Return the largest residual of a least-squares fit of log p by functions of at most `order` sites."""
    states = MANY.states()
    columns = []
    for sites in itertools.combinations(range(SITES), order):
        number = (states[:, list(sites)] * VOCAB ** torch.arange(order)).sum(1)
        columns.append(torch.nn.functional.one_hot(number, VOCAB**order))
    design = torch.cat(columns, 1).double()
    target = distribution.log().flatten()
    fitted = design @ torch.linalg.lstsq(design, target, driver="gelsd").solution
    return float((fitted - target).abs().max())


@pytest.mark.parametrize("order", [1, 2, 3])
def test_truncation_preserves_marginals_and_has_no_higher_interactions(order):
    distribution = truncate_orders(DISTRIBUTION, order)
    assert float(distribution.sum()) == pytest.approx(1, abs=1e-14)
    assert marginal_difference(distribution, order) < 1e-10
    assert marginal_difference(distribution, order + 1) > 1e-4
    assert residual_of_order(distribution, order) < 1e-8
    assert order == 1 or residual_of_order(distribution, order - 1) > 1e-3


test_errors_name_the_invalid_argument = refusals(
    "^{}=",
    [
        ("order", lambda: truncate_orders(DISTRIBUTION, SITES + 1)),
        ("probabilities", lambda: truncate_orders(2 * DISTRIBUTION, 2)),
        ("probabilities", lambda: truncate_orders(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), 1)),
    ],
)
