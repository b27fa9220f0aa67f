"""Options of the attention-only network, compared with plain loops over positions and heads."""

import dataclasses

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from refusals import expect_error
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.networks.saved import load_model, save_model
from trialogue.oracles import enumerate_sequences

PLAIN = AttentionOnlyConfig(vocab_size=4, context=2, width=3, heads=2, head_width=2)
OPTIONS = {
    "plain": {},
    "rank one": {"query_width": 1},
    "shared": {"shared": True},
    "shared and wide": {"shared": True, "head_width": 5},
    "mlp": {"mlp_width": 7},
    "no heads": {"heads": 0},
    "deep": {"layers": 3},
    "three tokens": {"context": 3},
    "all": {"layers": 2, "mlp_width": 3, "shared": True, "context": 3},
}
each_option = pytest.mark.parametrize("fields", OPTIONS.values(), ids=OPTIONS.keys())


def network(seed: int = 0, **fields) -> AttentionOnly:
    return AttentionOnly(dataclasses.replace(PLAIN, **fields), seed).double()


def logits_by_loops(net: AttentionOnly, context: Tensor) -> Tensor:
    """Compute Equations 1 and 2 with loops over layers, positions and heads."""
    shape = net.config
    states = [net.embedding[token] + net.positions[place] for place, token in enumerate(context)]
    for layer in range(shape.layers):
        after = []
        for place, state in enumerate(states):
            read = [net.compress[layer] @ each if shape.shared else each for each in states[: place + 1]]
            written = torch.zeros(shape.head_input, dtype=torch.float64)
            for head in range(layer * shape.heads, (layer + 1) * shape.heads):
                scores = [(net.query[head] @ read[-1]) @ (net.key[head] @ each) for each in read]
                attention = torch.stack(scores).softmax(0)
                mean = sum(weight * each for weight, each in zip(attention, read, strict=True))
                written = written + net.output[head] @ (net.value[head] @ mean)
            result = state + (net.decompress[layer] @ written if shape.shared else written)
            if shape.mlp_width:
                result = result + net.narrow[layer] @ functional.gelu(net.widen[layer] @ result)
            after.append(result)
        states = after
    return net.unembedding @ states[-1]


def largest_difference(net: AttentionOnly) -> float:
    contexts = enumerate_sequences(net.vocab_size, net.config.context)
    with torch.no_grad():
        expected = torch.stack([logits_by_loops(net, context) for context in contexts])
        return max(float((found - expected).abs().max()) for found in (net(contexts), net.whole_logits()))


@each_option
def test_logits_equal_the_equations(fields):
    assert largest_difference(network(**fields)) < 1e-12


@each_option
def test_networks_are_counted_saved_and_trained_in_float32(fields, tmp_path):
    net = AttentionOnly(dataclasses.replace(PLAIN, **fields), seed=5)
    assert net.config.parameters == sum(weights.numel() for weights in net.parameters())
    read = load_model(save_model(net, tmp_path / "network.safetensors"), AttentionOnly)
    contexts = enumerate_sequences(4, net.config.context)
    assert read.config == net.config
    assert torch.equal(read(contexts), net(contexts))
    net.whole_logits().logsumexp(1).sum().backward()
    for name, weights in net.named_parameters():
        assert weights.grad is not None, name
        assert weights.grad.dtype == torch.float32
        assert weights.numel() == 0 or weights.grad.abs().max() > 0, name


@pytest.mark.parametrize("fields", [{"layers": 2}, {"mlp_width": 2}])
def test_features_require_one_layer_without_an_mlp(fields):
    expect_error("one layer without an MLP", network(**fields).features, enumerate_sequences(4, 2))
