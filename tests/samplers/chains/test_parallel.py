"""The parallel sampler and the chain rule, compared with products of conditionals and joint distributions."""

from collections import Counter

import pytest
import torch

from refusals import expect_error
from samplers.chains.small_models import (
    Conditionals,
    Contradictory,
    Energies,
    random_ising,
    random_joint,
)
from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.oracles import whole_sequences
from trialogue.samplers import AdaptiveBlockDynamics, BlockGibbs, ChainRule, IndependentParallel
from trialogue.samplers.exact import transition_matrix

MODELS = [
    random_ising(1, 4),
    Conditionals(random_joint(2, 3, 3)),
    Energies(random_joint(2, 3, 3)),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_independent_parallel_is_the_product_of_conditionals(model):
    """P(x, y) is the product over i of p(y_i | x_-i), computed from the joint distribution."""
    distribution = model.probabilities().view([model.vocab_size] * model.sites)
    states = whole_sequences(model.vocab_size, model.sites)
    expected = torch.ones(len(states), len(states), dtype=torch.float64)
    for site in range(model.sites):
        conditional = distribution / distribution.sum(site, keepdim=True)
        for x, state in enumerate(states.tolist()):
            given = [slice(None) if i == site else value for i, value in enumerate(state)]
            expected[x] *= conditional[tuple(given)][states[:, site]]
    torch.testing.assert_close(transition_matrix(IndependentParallel(), model), expected, rtol=1e-12, atol=0)


STATES = whole_sequences(2, 3)


def block_of(sites):
    return torch.tensor([[site in sites for site in range(3)]])


def same_outside(sites):
    """Return which states agree with state 5 outside the block."""
    outside = ~block_of(sites)[0]
    return (STATES[:, outside] == STATES[5, outside]).all(1)


def drawn_distribution(model, tokens, block):
    enumeration, distribution = Enumeration(1, 1), Counter()
    for weight, drawn in enumeration.branches(lambda: model.draw_block(tokens, block, enumeration.choose)):
        distribution[tuple(drawn[0].tolist())] += float(weight)
    return distribution


@pytest.mark.parametrize("order", ["forward", "random"])
@pytest.mark.parametrize("sites", [[0], [0, 2], [0, 1, 2]], ids=str)
def test_the_chain_rule_draws_from_the_joint_distribution(order, sites):
    for model in (Conditionals(random_joint(5, 2, 3)), random_ising(3, 3)):
        distribution, block, same = model.probabilities(), block_of(sites), same_outside(sites)
        drawn = drawn_distribution(ChainRule(model, order), STATES[5:6], block)
        expected = distribution[same] / distribution[same].sum()
        for x, p in zip(STATES[same].tolist(), expected.tolist(), strict=True):
            assert drawn[tuple(x)] == pytest.approx(p, rel=1e-11)


def test_the_order_matters_for_contradictory_conditionals():
    model = Contradictory(random_joint(6, 2, 3), random_joint(7, 2, 3))
    matrices = [transition_matrix(BlockGibbs(3), ChainRule(model, order)) for order in ("forward", "random")]
    assert float((matrices[0] - matrices[1]).abs().max()) > 1e-2


def test_a_block_of_k_sites_needs_k_calls():
    class Counting(Conditionals):
        calls = 0

        def log_probs(self, tokens, masked):
            Counting.calls += 1
            return super().log_probs(tokens, masked)

    model = ChainRule(Counting(random_joint(5, 2, 4)))
    block = torch.tensor([[True, True, False, True], [False, False, False, True]])
    enumeration = Enumeration(2, 1)
    next(enumeration.branches(lambda: model.draw_block(torch.zeros(2, 4).long(), block, enumeration.choose)))
    assert Counting.calls == 3


def test_the_listed_distribution_of_a_block_is_the_drawn_one():
    """For contradictory conditionals, too, the listed probabilities equal those of the drawn blocks."""
    model = ChainRule(Contradictory(random_joint(6, 2, 3), random_joint(7, 2, 3)))
    for sites in ([1], [0, 2], [0, 1, 2]):
        block, same = block_of(sites), same_outside(sites)
        listed = model.block_log_weights(STATES, block.expand(8, -1)).exp()
        drawn = drawn_distribution(model, STATES[5:6], block)
        for x, p in zip(STATES[same].tolist(), listed[same].tolist(), strict=True):
            assert drawn[tuple(x)] == pytest.approx(p, rel=1e-11)


def test_adaptive_blocks_of_a_masked_oracle_use_the_chain_rule():
    """With the chain rule, the transitions follow the joint distribution."""

    def distribution(tokens):
        first = (1.0 + tokens[:, 0]) / 3
        return torch.stack((first, 1 - first), 1)

    joint = random_joint(5, 3, 3)
    for blocks in (((0, 1), (1, 2)), ((0, 1, 2), (1,))):
        chain = AdaptiveBlockDynamics(blocks, distribution)
        expected = transition_matrix(chain, Energies(joint))
        found = transition_matrix(chain, ChainRule(Conditionals(joint)))
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-15)
        with pytest.raises(InputError, match=r"block=\d: use `ChainRule.* Conditionals has conditionals"):
            transition_matrix(chain, Conditionals(joint))
        with pytest.raises(InputError, match="order='random': use \"forward\""):
            transition_matrix(chain, ChainRule(Conditionals(joint), "random"))


def test_invalid_models_and_orders_are_reported():
    expect_error("model='Energies'", ChainRule, Energies(random_joint(2, 2, 2)))
    expect_error("order='backward'", ChainRule, random_ising(0, 2), "backward")
