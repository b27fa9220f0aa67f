"""Tests of compatibility of conditionals: recovered joint distributions and cross-ratios of two variables."""

import math

import pytest
import torch

from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue_lab.theory.compatibility import compatibility


def conditionals(vocab, sites, seed):
    """Sample conditional distributions independently for each site, so that they are incompatible."""
    draws = torch.randn((vocab,) * sites + (sites,), generator=generator(seed, "laws"), dtype=torch.float64)
    return torch.stack([draws[..., site].log_softmax(site) for site in range(sites)], -1)


def conditionals_of_model(model):
    log_probs = model.site_log_probs(model.states())
    selected = log_probs.gather(2, model.states()[:, :, None])[:, :, 0]
    return selected.view((model.vocab_size,) * model.sites + (model.sites,))


@pytest.mark.parametrize("order", [2, 3])
def test_joint_distribution_is_recovered_from_its_conditionals(order):
    model = ManyBody.random(4, 3, order=order, rank=8, seed=1)
    found = compatibility(conditionals_of_model(model))
    assert found.residual < 1e-9
    torch.testing.assert_close(found.log_probs.exp(), model.probabilities(), rtol=0, atol=1e-10)


def test_two_variables_with_different_cross_ratios_are_incompatible():
    log_conditionals = conditionals(2, 2, seed=1)
    first, second = log_conditionals[..., 0], log_conditionals[..., 1]
    log_cross_ratios = [
        float(model[0, 0] + model[1, 1] - model[0, 1] - model[1, 0]) for model in (first, second)
    ]
    assert abs(log_cross_ratios[0] - log_cross_ratios[1]) > 0.1
    assert compatibility(log_conditionals).residual > 0.01


@pytest.mark.parametrize(
    "table", [torch.zeros(2, 3, 2), torch.tensor([[[0.0, 0.0], [0.0, 0.0]], [[-math.inf, 0.0], [0.0, 0.0]]])]
)
def test_errors_name_the_invalid_argument(table):
    with pytest.raises(InputError) as caught:
        compatibility(table)
    assert caught.value.field == "log_probs"
