"""Heat-bath chains: transitions from their definitions, and errors for invalid input."""

from collections import Counter
from itertools import combinations

import pytest
import torch

from refusals import calls_without_expected_error, expect_error
from samplers.chains.small_models import Conditionals, block_kernel, random_ising, random_joint
from trialogue.data import Ising
from trialogue.enumeration import Enumeration
from trialogue.errors import InputError
from trialogue.randomness import Streams
from trialogue.samplers import (
    AdaptiveBlockDynamics,
    BlockDynamics,
    BlockGibbs,
    ChainRule,
    Gibbs,
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
