"""Test conditionals and joint samples of blocks of a Potts chain of fixed length, and its spectrum."""

import math

import pytest
import torch

from data.potts import potts_enumeration as by_hand
from refusals import expect_error
from trialogue.data import PottsChain
from trialogue.data.potts import spectrum as potts_spectrum
from trialogue.errors import InputError
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


@pytest.mark.parametrize(
    ("patterns", "window", "temperature"),
    [
        ([[0], [1]], 11, 4.0),
        ([[0], [1]], 11, 2.0),
        ([[0], [1], [2]], 7, 3.0),
        ([[0, 1, 2], [2, 1, 0]], 7, 2.0),
    ],
)
def test_symmetric_tokens_do_not_hide_an_eigenvalue(patterns, window, temperature, monkeypatch):
    """The second eigenvector is antisymmetric in the patterns, so a symmetric start vector does not contain it."""
    chain = PottsChain.from_patterns(patterns, window)
    assert chain.vocab_size ** (window - 1) > potts_spectrum.DENSE_STATES
    sparse = chain.correlation_length(temperature)
    monkeypatch.setattr(potts_spectrum, "DENSE_STATES", 4096)
    assert sparse == pytest.approx(chain.correlation_length(temperature), rel=1e-6)


def test_unresolved_eigenvalues_of_large_matrices_are_rejected():
    chain = PottsChain.from_patterns([[0], [1]], 11)
    with pytest.raises(
        InputError,
        match=r"^temperature=0\.5: use a higher one: the correlation length is above 1e\+09 .*1024 states",
    ):
        chain.correlation_length(0.5)


def test_cold_chain_with_periodic_ground_state_has_a_correlation_length():
    """The eigenvalues are e^(-1.1 / T) +- e^(-0.5 / T). Some weights underflow in float64."""
    chain, temperature = PottsChain(torch.tensor([[1.1, 0.0], [1.0, 1.1]], dtype=torch.float64)), 0.001
    expected = 0.5 * math.exp(0.6 / temperature)
    assert chain.correlation_length(temperature) == pytest.approx(expected, rel=1e-9)


def test_matrix_with_extreme_weights_is_balanced():
    """The weights along the cycle 0, 1 exceed the range of float64, and token 2 follows itself."""
    table = torch.full((3, 3), 4.0)
    table[0, 1], table[1, 0], table[2, 2] = 0.0, 1.0, 0.51
    temperature = 0.001
    with pytest.raises(
        InputError, match=r"temperature=0\.001: use a higher one: the correlation length is above"
    ):
        PottsChain(table).correlation_length(temperature)
