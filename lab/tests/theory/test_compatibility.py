"""Compatibility of conditionals: recovered joint laws, the cross-ratio of two variables, and the scan of Gibbs."""

import math

import pytest
import torch

from mutants.modules import altered
from trialogue.data import ManyBody
from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue_lab.theory import compatibility as module
from trialogue_lab.theory.compatibility import compatibility


def conditionals(vocab, sites, seed):
    """Conditional laws that are drawn site by site, in no accord."""
    draws = torch.randn((vocab,) * sites + (sites,), generator=generator(seed, "laws"), dtype=torch.float64)
    return torch.stack([draws[..., site].log_softmax(site) for site in range(sites)], -1)


def of_law(law):
    answers = law.site_log_probs(law.states())
    own = answers.gather(2, law.states()[:, :, None])[:, :, 0]
    return own.view((law.vocab_size,) * law.sites + (law.sites,))


@pytest.mark.parametrize("order", [2, 3])
def test_conditionals_of_a_law_give_it_back(order):
    law = ManyBody.random(4, 3, order=order, rank=8, seed=1)
    found = compatibility(of_law(law))
    assert found.residual < 1e-9
    torch.testing.assert_close(found.log_probs.exp(), law.probabilities(), rtol=0, atol=1e-10)


def test_two_variables_are_compatible_where_their_cross_ratios_agree():
    laws = conditionals(2, 2, seed=1)
    first, second = laws[..., 0], laws[..., 1]
    apart = [float(law[0, 0] + law[1, 1] - law[0, 1] - law[1, 0]) for law in (first, second)]
    assert abs(apart[0] - apart[1]) > 0.1
    assert compatibility(laws).residual > 0.01


def test_a_system_without_the_marginals_is_rejected():
    wrong = altered(module, ("[1.0, -1.0]", "[1.0, 0.0]"), compiled=False)["compatibility"]
    law = ManyBody.random(4, 3, order=2, rank=8, seed=1)
    assert wrong(of_law(law)).residual > 1e-3


@pytest.mark.parametrize(
    "table",
    [
        torch.zeros(2, 3, 2),
        torch.tensor([[[0.0, 0.0], [0.0, 0.0]], [[-math.inf, 0.0], [0.0, 0.0]]]),
    ],
)
def test_bad_input_is_named(table):
    with pytest.raises(InputError) as caught:
        compatibility(table)
    assert caught.value.field == "log_probs"
