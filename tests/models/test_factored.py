"""Factored attention: exact two-body conditionals, and closed forms that avoid copies of the sequence."""

import pytest
import torch

from refusals import expect_error
from trialogue.data import ManyBody
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.models.networks.masked import MaskedNetwork
from trialogue.randomness import generator
from trialogue.testing import check_masked

SITES = 12


def config(layers, **fields):
    return FactoredAttentionConfig(vocab_size=2, sites=SITES, layers=layers, **fields)


def test_one_layer_has_the_conditionals_of_a_two_body_distribution():
    distribution = ManyBody.random(4, 3, order=2, rank=3, seed=1)
    net = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4)).double()
    positions, vectors = distribution.positions, distribution.vectors
    with torch.no_grad():
        net.attention[0].copy_(positions.T @ positions)
        net.values[0].copy_(-2 * distribution.strength * vectors.T @ vectors)
    torch.testing.assert_close(
        net.site_log_probs(distribution.states()),
        distribution.site_log_probs(distribution.states()),
        rtol=1e-11,
        atol=1e-11,
    )


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_closed_forms_equal_the_evaluation_with_copies(layers, rank, layer_norm):
    shape = FactoredAttentionConfig(vocab_size=5, sites=7, layers=layers, rank=rank, layer_norm=layer_norm)
    net = FactoredAttention(shape, seed=1)
    net.batch_size = 20
    tokens = torch.randint(5, (9, 7), generator=generator(0, "tokens"))
    expected = MaskedNetwork.site_log_probs(net, tokens)
    torch.testing.assert_close(net.site_log_probs(tokens), expected, rtol=1e-11, atol=1e-11)
    logits = MaskedNetwork.site_logits(net, tokens)
    torch.testing.assert_close(net.site_logits(tokens), logits, rtol=1e-11, atol=1e-11)
    own = logits.gather(2, tokens[:, :, None])[:, :, 0]
    torch.testing.assert_close(net.token_logits(tokens), own, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(MaskedNetwork.token_logits(net, tokens), own, rtol=1e-11, atol=1e-11)
    sites = torch.arange(9) % 7
    logits = net(tokens, sites)
    assert logits.requires_grad
    one = expected[torch.arange(9), sites].float()
    torch.testing.assert_close(logits.log_softmax(-1), one, rtol=1e-3, atol=1e-4)


def test_factored_attention_keeps_the_contract_of_masked_oracles():
    for layers in (1, 2, 3):
        net = FactoredAttention(FactoredAttentionConfig(vocab_size=3, sites=4, layers=layers), seed=layers)
        check_masked(net)


def test_sequences_of_the_wrong_shape_or_vocabulary_are_rejected():
    for tokens in (torch.zeros(2, 3, dtype=torch.int64), torch.full((2, SITES), 3)):
        expect_error(r"^tokens=", FactoredAttention(config(1)).site_log_probs, tokens)
