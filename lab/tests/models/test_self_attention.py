"""Tests of one layer of standard attention against PyTorch, and of masked tokens."""

import torch
import torch.nn.functional as F

from trialogue.randomness import generator
from trialogue_lab.models.self_attention import SelfAttention, SelfAttentionConfig

TOKENS = torch.randint(3, (6, 5), generator=generator(0, "tokens"))


def network() -> SelfAttention:
    return SelfAttention(SelfAttentionConfig(vocab_size=3, sites=5), seed=1).double()


def test_layer_agrees_with_scaled_dot_product_attention() -> None:
    net = network()
    for site in range(5):
        states = F.one_hot(TOKENS, 3).double()
        states[:, site] = 0
        states = states + net.positions
        attended = F.scaled_dot_product_attention(
            states @ net.queries.T, states @ net.keys.T, states @ net.values.T
        )
        found = net(TOKENS, torch.full((6,), site))
        torch.testing.assert_close(found, attended[:, site], rtol=1e-10, atol=1e-12)
        assert found.requires_grad


def test_masked_token_has_no_effect() -> None:
    net, other = network(), TOKENS.clone()
    other[:, 2] = (other[:, 2] + 1) % 3
    at = torch.full((6,), 2)
    assert torch.equal(net(TOKENS, at), net(other, at))
    assert not torch.equal(net(TOKENS, at - 1), net(other, at - 1))
    assert net.site_log_probs(TOKENS).exp().sum(2).sub(1).abs().max() < 1e-12
