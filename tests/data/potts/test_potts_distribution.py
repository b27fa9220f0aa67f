"""Test conditionals and joint samples of blocks of a Potts chain of fixed length."""

import pytest
import torch

from data.potts import potts_enumeration as by_hand
from refusals import expect_error
from trialogue.data import PottsChain
from trialogue.randomness import Streams, generator
from trialogue.testing import check_energy, check_joint, check_masked

CHAINS = {
    "neighbours": (PottsChain(by_hand.random_table(1, 3, 2)), 4),
    "three": (PottsChain(by_hand.random_table(2, 2, 3)), 6),
    "independent": (PottsChain(by_hand.random_table(3, 3, 1)), 4),
    "wide": (PottsChain(by_hand.random_table(4, 2, 4)), 6),
    "one-window": (PottsChain(by_hand.random_table(5, 2, 4)), 4),
}
TEMPERATURE = 0.6


@pytest.fixture(params=CHAINS)
def case(request):
    chain, length = CHAINS[request.param]
    distribution, _ = by_hand.distribution(chain, length, TEMPERATURE)
    return chain.at(length, TEMPERATURE), by_hand.sequences(chain.vocab_size, length), distribution


def close(first, second, tolerance=1e-12):
    torch.testing.assert_close(first, second, rtol=tolerance, atol=tolerance)


def test_models_keep_their_contracts(case):
    model, x, distribution = case
    assert torch.equal(model.states(), x)
    close(model.probabilities(), distribution)
    close((-model.energy(x) - model.log_partition()).exp(), distribution)
    check_energy(model)
    for seed in range(3):
        check_masked(model, distribution=distribution, seed=seed)
        check_joint(model, seed=seed)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [([[0, -1, 0, 0]], "-1: use tokens from 0 to V - 1 = 2"), ([[0, 3, 0, 0]], "3: "), ([[0] * 6], "shape"),
     ([[0.0, 1.0, 0.0, 0.0]], "shape"), ([0, 1, 0, 0], r"shape \(rows, 4\)")],
)  # fmt: skip
def test_invalid_tokens_are_rejected(tokens, message):
    model, wrong = CHAINS["neighbours"][0].at(4, TEMPERATURE), torch.tensor(tokens)
    for method in (model.energy, model.site_log_probs, lambda x: model.log_probs(x, x > 0)):
        expect_error("^tokens=.*" + message, method, wrong)
    valid_tokens = torch.tensor([[0, 1, 2, 0]])
    for mask in (valid_tokens, valid_tokens[:, 1:] > 0):
        expect_error(r"^masked=.*one bool for each token", model.log_probs, valid_tokens, mask)


def test_a_sample_depends_on_its_block_only(case):
    model, x, _ = case
    masks = torch.rand(x.shape, generator=generator(1, "masks")) < 0.5
    masks[0], masks[1] = False, True
    streams = Streams(1, torch.arange(len(x)))
    together = model.draw_block(x, masks, streams.choose)
    for row in range(0, len(x), max(1, len(x) // 10)):
        alone = Streams(1, torch.tensor([row]))
        assert torch.equal(
            model.draw_block(x[row : row + 1], masks[row : row + 1], alone.choose)[0], together[row]
        )
        assert torch.equal(together[row, ~masks[row]], x[row, ~masks[row]])


def test_cost_depends_on_the_block_only():
    """Two distant sites of a thousand are sampled exactly, and the other sites do not change."""
    model = PottsChain(by_hand.random_table(6, 3, 3)).at(1000, TEMPERATURE)
    x = model.sample(4, seed=1)
    block = torch.zeros_like(x, dtype=torch.bool)
    block[:, [0, 1, 500, 999]] = True
    drawn = model.draw_block(x, block, Streams(0, torch.arange(4)).choose)
    assert torch.equal(drawn[~block], x[~block])
    masked = torch.zeros_like(block)
    masked[:, [500]] = True
    close(model.log_probs(x, masked)[:, 500], model.site_log_probs(x)[:, 500])
