"""Tests of the variation of attention, the similarity to a stack, and the accuracy on closing brackets."""

import math

import pytest
import torch
from torch import Tensor

from trialogue.data import Dyck
from trialogue.randomness import generator
from trialogue_lab.analysis import attention_variation
from trialogue_lab.analysis.closing_accuracy import closing_accuracy
from trialogue_lab.models import dyck_transformer


def random_patterns(count: int, length: int, causal: bool) -> Tensor:
    """Sample patterns whose rows are uniform on the simplex of the previous or of all positions."""
    samples = torch.empty(count, length, length, dtype=torch.float64).exponential_(
        generator=generator(0, "rows")
    )
    samples = samples.tril() if causal else samples
    return samples / samples.sum(-1, keepdim=True)


def test_the_baseline_agrees_with_random_causal_attention() -> None:
    assert attention_variation.causal_baseline(19) == pytest.approx(3.295, abs=5e-4)
    assert [attention_variation.causal_baseline(n) for n in (1, 2)] == pytest.approx([0, 1 / 3])
    pattern = random_patterns(1, 5, True)
    assert float(attention_variation.variation(pattern, pattern)) == 0
    samples = attention_variation.variation(*random_patterns(20_000, 9, True).view(2, -1, 9, 9))
    error = 4 * float(samples.std()) / math.sqrt(len(samples))
    assert float(samples.mean()) == pytest.approx(attention_variation.causal_baseline(9), abs=error)
    everywhere = attention_variation.variation(*random_patterns(20_000, 9, False).view(2, -1, 9, 9))
    assert float(everywhere.mean()) != pytest.approx(attention_variation.causal_baseline(9), abs=error)


def test_stack_similarity_of_perfect_and_wrong_attention_has_the_expected_value() -> None:
    dyck = Dyck(24, (0.5, 0.5), 0.5, 4, complete=False)
    tokens = dyck.sample(30, seed=1)
    partner, depths = dyck.matching(tokens), dyck.depth(tokens)
    perfect = torch.zeros(30, 25, 25)
    for row in range(30):
        stack: list[int] = []
        for i in range(24):
            if tokens[row, i] % 2 == 0:
                stack.append(i)
            else:
                assert partner[row, i] == stack.pop()
            perfect[row, i + 1, stack[-1] + 1 if stack else 0] = 1.0
    assert attention_variation.stack_likeness(perfect, tokens) == 1.0
    # Attention to a neighboring position is not stack-like.
    assert attention_variation.stack_likeness(perfect.roll(1, 2), tokens) == 0.0
    opened = perfect.clone()
    bracket = ((tokens % 2 == 1) & (depths > 0)).nonzero()[0]
    opened[bracket[0], bracket[1] + 1] = 0
    opened[bracket[0], bracket[1] + 1, 0] = 1
    assert 0 < attention_variation.stack_likeness(opened, tokens) < 1


def test_closing_accuracy_of_exact_and_constant_networks_has_the_expected_value() -> None:
    tokens = Dyck(60, (0.5, 0.5), 0.5, 3, complete=False).sample(30, seed=2)
    # The exact network gives only the correct closing bracket a probability.
    assert closing_accuracy(dyck_transformer.balanced_transformer(2, 3, 1.0), tokens) == (1.0, 1.0)
    assert closing_accuracy(dyck_transformer.uniform_attention_transformer(2, 3), tokens, 40) == (1.0, 1.0)
    network = dyck_transformer.DyckTransformer(dyck_transformer.DyckTransformerConfig(depth=3)).eval()
    with torch.no_grad():
        network.head.weight.zero_()
        network.head.bias.copy_(torch.tensor([0.0, 1.0, 0.0, 0.0]))
    found, always_first = closing_accuracy(network, tokens, 20), tokens[:, 20:]
    share = float((always_first == 1).sum() / (always_first % 2 == 1).sum())
    assert found.likeliest == pytest.approx(share)
    assert found.confident == 0.0  # e / (1 + e) = 0.73 of the closing mass
    with torch.no_grad():
        network.head.bias[1] = 2.0
    assert 0.3 < closing_accuracy(network, tokens, 20).confident < 0.7


def test_uniform_attention_changes_only_the_attention() -> None:
    config = dyck_transformer.DyckTransformerConfig(
        embedding="tokens", residual=True, mlps=((9, 50), ()), initial_scale=0.5
    )
    network = dyck_transformer.DyckTransformer(config, 1).eval()
    tokens = Dyck(12, (0.5, 0.5), 0.5, 4, complete=False).sample(4, seed=1)
    ablated = attention_variation.with_uniform_attention(network)
    rows = 1 / torch.arange(1, 14)[:, None].expand(13, 13).tril() * torch.ones(13, 13).tril()
    for pattern in ablated.attention_weights(tokens):
        assert torch.allclose(pattern, rows.expand(4, 13, 13).nan_to_num(posinf=0.0), atol=1e-6)
    assert not torch.allclose(network(tokens), ablated(tokens), atol=1e-4)
    assert torch.equal(network.head.weight, ablated.head.weight)
