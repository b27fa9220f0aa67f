"""The masked oracle of a transformer, compared with passes of the network on single sequences."""

import pytest
import torch
from torch import Tensor

from models.random_transformer import small
from refusals import expect_error
from trialogue.models import MaskedTransformer, Transformer
from trialogue.randomness import generator


def network() -> Transformer:
    return small(causal=False)


def tokens(rows: int = 7, sites: int = 5) -> Tensor:
    return torch.randint(0, 3, (rows, sites), generator=generator(0, "tokens"))


def random_masks(rows: int = 7, sites: int = 5) -> Tensor:
    masked = torch.rand(rows, sites, generator=generator(0, "masked")) < 0.4
    masked[0] = False
    masked[1] = True
    return masked


def log_probs_of_row(model: Transformer, row: Tensor, masked: Tensor) -> Tensor:
    """Return log-probabilities (N, 3) of one sequence, computed by a separate pass."""
    inputs = torch.where(masked, model.config.vocab_size + 2, row)
    with torch.no_grad():
        return model(inputs[None])[0, :, :3].log_softmax(-1)


def largest_difference(oracle: MaskedTransformer, model: Transformer) -> float:
    """Return the largest difference between the oracle and passes of the network on single sequences."""
    rows, masks = tokens(), random_masks()
    log_probs, sites = oracle.log_probs(rows, masks), oracle.site_log_probs(rows)
    worst = 0.0
    for row in range(len(rows)):
        expected = log_probs_of_row(model, rows[row], masks[row])
        if bool(masks[row].any()):
            worst = max(worst, float((log_probs[row] - expected)[masks[row]].abs().max()))
        for site in range(rows.shape[1]):
            expected = log_probs_of_row(model, rows[row], torch.arange(rows.shape[1]) == site)[site]
            chosen = oracle.site_log_weights(rows[row : row + 1], torch.tensor([site]))[0]
            worst = max(worst, float((sites[row, site] - expected).abs().max()))
            worst = max(worst, float((chosen - expected).abs().max()))
    return worst


@pytest.mark.parametrize("batch_size", [1, 3, 256])
def test_log_probabilities_equal_those_of_the_network(batch_size):
    model = network()
    oracle, rows, masks = MaskedTransformer(model, batch_size), tokens(), random_masks()
    assert largest_difference(oracle, model) < 1e-5
    # Visible tokens have probability 1.
    visible = oracle.log_probs(rows, masks)[~masks]
    assert torch.equal(visible.argmax(-1), rows[~masks])
    assert visible.amax(-1).unique().tolist() == [0]


class _FixedTokens(MaskedTransformer):
    def free(self, tokens: Tensor) -> Tensor:
        return tokens != 2


@pytest.mark.parametrize("kind", [MaskedTransformer, _FixedTokens])
@pytest.mark.parametrize("is_mostly_masked", [False, True])
def test_masked_sites_have_the_values_of_all_sites(kind, is_mostly_masked):
    model = network()
    oracle, rows, masks = kind(model, 3), tokens(), random_masks()
    if is_mostly_masked:
        oracle, masks = kind(model, len(rows)), torch.ones_like(rows, dtype=torch.bool)
        masks[1, 3] = False
        rows = rows.clamp(max=1)
        rows[0, 0] = 2
        assert 0.9 < float((masks & oracle.free(rows)).float().mean()) < 1
    found, free = oracle.masked_log_probs(rows, masks), masks & oracle.free(rows)
    for row in range(len(rows)):
        expected = log_probs_of_row(model, rows[row], free[row])
        torch.testing.assert_close(found[row][free[row]], expected[free[row]])
    # Tokens that never change have probability 1, although they are masked.
    fixed = masks & ~free
    assert bool(fixed.any()) == (kind is _FixedTokens)
    assert torch.equal(found[fixed].argmax(-1), rows[fixed])
    assert torch.equal(found[masks], oracle.log_probs(rows, masks)[masks])


class _MasksAll(MaskedTransformer):
    def logits_at(self, inputs: Tensor, rows: Tensor, sites: Tensor) -> Tensor:
        return super().logits_at(torch.full_like(inputs, self.mask), rows, sites)


def test_check_rejects_a_mutant():
    model = network()
    assert largest_difference(_MasksAll(model), model) > 1e-2


def test_results_have_no_gradients_and_follow_double_precision():
    assert not MaskedTransformer(network()).site_log_probs(tokens()).requires_grad
    double = MaskedTransformer(network().double()).site_log_probs(tokens())
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), MaskedTransformer(network()).site_log_probs(tokens()))


def test_invalid_input_is_reported_in_one_line():
    oracle = MaskedTransformer(network())
    for rows, message in (
        (tokens() + 1, "tokens=3: use token ids from 0 to 2"),
        (tokens(1, 13), "12 positions"),
    ):
        expect_error(message, oracle.site_log_probs, rows)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("scaled", [True, False])
def test_logits_at_single_sites_equal_those_of_a_full_pass(layers, scaled):
    model = small(layers, layers=layers, causal=False, scaled_attention=scaled)
    inputs = torch.randint(6, (9, 6), generator=generator(0, "inputs"))
    whole = model(inputs)[..., :3]
    # All rows in order, a few rows out of order, a repeated row, and more sites than rows.
    for rows in (
        torch.arange(9),
        torch.tensor([4, 1, 8]),
        torch.tensor([2, 2, 2]),
        torch.arange(9).repeat(2),
    ):
        sites = (rows * 5 + torch.arange(len(rows))) % 6
        logits = model.masked_logits(inputs, rows, sites)
        torch.testing.assert_close(logits, whole[rows, sites], rtol=1e-5, atol=1e-5)
    loss = model.masked_logits(inputs, rows[:9], sites[:9]).square().mean()
    gradients = torch.autograd.grad(loss, list(model.blocks.parameters()))
    expected = torch.autograd.grad(
        whole[rows[:9], sites[:9]].square().mean(), list(model.blocks.parameters())
    )
    for gradient, expected_gradient in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-4, atol=1e-6)
