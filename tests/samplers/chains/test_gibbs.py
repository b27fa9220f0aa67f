"""Heat-bath chains, the parallel sampler and the chain rule: transitions from their definitions, and errors."""

from collections import Counter
from itertools import combinations

import pytest
import torch

from refusals import calls_without_expected_error, expect_error
from samplers.chains.small_models import (
    Conditionals,
    Contradictory,
    Energies,
    block_kernel,
    random_ising,
    random_joint,
)
from trialogue.data import Ising
from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.oracles import enumerate_sequences
from trialogue.randomness import Streams
from trialogue.samplers import (
    AdaptiveBlockDynamics,
    BlockDynamics,
    BlockGibbs,
    ChainRule,
    Gibbs,
    IndependentParallel,
    run_chain,
)
from trialogue.samplers.chains import subsets
from trialogue.samplers.exact import transition_matrix

MODEL = random_ising(1, 4)
PROBABILITIES = MODEL.probabilities()
BLOCKS = ((0, 1), (2,), (1, 3))


def kernel(*block, tilt=None):
    return block_kernel(PROBABILITIES, 2, 4, block, tilt)


def close(first, second):
    torch.testing.assert_close(first, second, rtol=1e-11, atol=1e-15)


def test_gibbs_in_random_order_is_the_mean_of_its_updates():
    close(transition_matrix(Gibbs(), MODEL), sum(kernel(site) for site in range(4)) / 4)


def test_a_sweep_is_the_product_of_its_updates():
    swept = kernel(0) @ kernel(1) @ kernel(2) @ kernel(3)
    close(transition_matrix(Gibbs("sweep"), MODEL), swept)
    with pytest.raises(AssertionError):
        close(transition_matrix(Gibbs("sweep"), MODEL), kernel(3) @ kernel(2) @ kernel(1) @ kernel(0))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_block_gibbs_is_the_mean_over_all_blocks(size):
    blocks = list(combinations(range(4), size))
    close(transition_matrix(BlockGibbs(size), MODEL), sum(kernel(*block) for block in blocks) / len(blocks))


@pytest.mark.parametrize("weights", [None, (1.0, 3.0, 0.5)])
def test_block_dynamics_is_the_weighted_mean_over_its_blocks(weights):
    parts = [weight * kernel(*block) for weight, block in zip(weights or (1, 1, 1), BLOCKS, strict=True)]
    close(transition_matrix(BlockDynamics(BLOCKS, weights), MODEL), sum(parts) / sum(weights or (1, 1, 1)))


def test_blocks_may_be_sites_or_masks():
    masks = torch.tensor(
        [[True, True, False, False], [False, False, True, False], [False, True, False, True]]
    )
    assert BlockDynamics(masks) == BlockDynamics(BLOCKS) == BlockDynamics([list(block) for block in BLOCKS])
    assert AdaptiveBlockDynamics(masks, adaptive_distribution) == AdaptiveBlockDynamics(
        BLOCKS, adaptive_distribution
    )


def adaptive_distribution(tokens):
    first, last = tokens[:, 0].double(), tokens[:, 3].double()
    return torch.stack((1 + first, 2 - last, 1 + 3 * first * last), 1).log().softmax(1)


def test_adaptive_blocks_account_for_the_choice_of_the_block():
    """P(x, y) = sum over K of p_K(K | x) p(y_K | x_-K, K), with equation (4.1)."""
    weights = adaptive_distribution(MODEL.states())
    tilted = [kernel(*block, tilt=weights[:, k]) for k, block in enumerate(BLOCKS)]
    expected = sum(weights[:, k, None] * part for k, part in enumerate(tilted))
    close(transition_matrix(AdaptiveBlockDynamics(BLOCKS, adaptive_distribution), MODEL), expected)


@pytest.mark.parametrize("listed", [1024, 0], ids=["listed", "drawn"])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_random_subsets_are_uniform(monkeypatch, listed, size):
    monkeypatch.setattr(subsets, "LISTED", listed)
    enumeration, distribution = Enumeration(1, 1), Counter()
    rows = torch.zeros(1, dtype=torch.int64)
    for weight, chosen in enumeration.branches(
        lambda: subsets.choose_subsets(5, size, rows, enumeration.choose)
    ):
        distribution[tuple(chosen[0].nonzero()[:, 0].tolist())] += float(weight)
    expected = dict.fromkeys(combinations(range(5), size), 1 / len(list(combinations(range(5), size))))
    assert distribution == pytest.approx(expected, rel=1e-12)


def test_large_subsets_are_drawn_through_their_complement():
    rows = torch.arange(40)
    streams = Streams(0, rows)
    chosen = subsets.choose_subsets(2000, 1998, rows, streams.choose)
    assert chosen.sum(1).tolist() == [1998] * 40
    assert streams.counters.tolist() == [2] * 40


def test_blocks_of_different_sizes_share_a_batch():
    """The random numbers of a row depend on its own block only."""
    model = Ising.clique(14, 9, coupling=0.1, field=0.2)
    chain = BlockDynamics((tuple(range(12)), (12, 13), (0, 13), tuple(range(2, 14))))
    start = torch.zeros(12, 14, dtype=torch.int64)
    batch = run_chain(chain, model, start=start, steps=9, seed=1).tokens
    for place in range(12):
        single_chain = run_chain(chain, model, start=start[:1], steps=9, seed=1, chain_ids=[place]).tokens
        assert torch.equal(single_chain[0], batch[place])


TOKENS = torch.zeros(2, 4, dtype=torch.int64)


def initialised(chain):
    return chain.init(MODEL, TOKENS)


INVALID = [
    ("block_size=5: use at most 4, the number of sites", lambda: initialised(BlockGibbs(5))),
    (r"blocks=\[\]", lambda: BlockDynamics(())),
    (r"blocks=\(0, 0\)", lambda: BlockDynamics(((0, 0),))),
    (r"blocks=\(\)", lambda: BlockDynamics(((),))),
    ("blocks=0.5: use an integer", lambda: BlockDynamics(((0, 0.5),))),
    (r"blocks=\(2,\): use the shape \(blocks, N\)", lambda: BlockDynamics(torch.tensor([True, False]))),
    ("weights=.*give 3 non-negative", lambda: BlockDynamics(BLOCKS, (1.0, 2.0))),
    ("weights=", lambda: BlockDynamics(BLOCKS, (1.0, -1.0, 1.0))),
    ("distribution=.*give a function", lambda: AdaptiveBlockDynamics(BLOCKS, object())),
    ("blocks=4: use sites from 0 to 3", lambda: initialised(BlockDynamics(((0, 1), (2, 4))))),
    (r"blocks=\[2\]: .*cover every site", lambda: initialised(BlockDynamics(((0, 1), (3,))))),
    (r"blocks=\[2\]: .*cover every site", lambda: initialised(BlockDynamics(BLOCKS, (1, 0, 1)))),
    (
        r"blocks=\[1, 2, 3\]: .*cover every site",
        lambda: initialised(AdaptiveBlockDynamics(((0,),), adaptive_distribution)),
    ),
]


def test_invalid_blocks_are_reported():
    assert not calls_without_expected_error(INVALID)


@pytest.mark.parametrize(
    "probabilities", [torch.ones(2, 3), torch.ones(2, 2) / 2, torch.tensor([[1.5, -0.5, 0.0]]).expand(2, -1)]
)
def test_an_invalid_distribution_over_blocks_is_reported(probabilities):
    chain = AdaptiveBlockDynamics(BLOCKS, lambda tokens: probabilities)
    expect_error("distribution=", run_chain, chain, MODEL, start=TOKENS, steps=1, require_ergodic=False)


def test_blocks_of_a_masked_oracle_need_the_chain_rule():
    masked = Conditionals(random_joint(2, 2, 4))
    for chain in (BlockGibbs(2), BlockDynamics(BLOCKS)):
        with pytest.raises(
            InputError,
            match=r"block=2: use `ChainRule\(model\)`.* Conditionals has conditionals of single sites",
        ):
            run_chain(chain, masked, start=TOKENS, steps=9)
        run_chain(chain, ChainRule(masked), start=TOKENS, steps=9)
    close(transition_matrix(BlockGibbs(1), masked), transition_matrix(Gibbs(), masked))


MODELS = [random_ising(1, 4), Conditionals(random_joint(2, 3, 3)), Energies(random_joint(2, 3, 3))]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_independent_parallel_is_the_product_of_conditionals(model):
    """P(x, y) is the product over i of p(y_i | x_-i), computed from the joint distribution."""
    distribution = model.probabilities().view([model.vocab_size] * model.sites)
    states = enumerate_sequences(model.vocab_size, model.sites)
    expected = torch.ones(len(states), len(states), dtype=torch.float64)
    for site in range(model.sites):
        conditional = distribution / distribution.sum(site, keepdim=True)
        for x, state in enumerate(states.tolist()):
            given = [slice(None) if i == site else value for i, value in enumerate(state)]
            expected[x] *= conditional[tuple(given)][states[:, site]]
    torch.testing.assert_close(transition_matrix(IndependentParallel(), model), expected, rtol=1e-12, atol=0)


STATES = enumerate_sequences(2, 3)


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
