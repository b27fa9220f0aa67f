"""Tests of the transformer of topics against attention over tokens, and of its trained parameters."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from trialogue.errors import InputError
from trialogue.randomness import generator
from trialogue.testing import check_masked
from trialogue.training import load_model, save_model
from trialogue_lab.models.topic_transformer import TopicTransformer, TopicTransformerConfig

WORDS = 5
INPUTS = torch.randint(0, WORDS + 1, (4, 9), generator=generator(0, "inputs"))
SHAPES: dict[str, dict[str, Any]] = {
    "one layer": {},
    "one-hot": {"embeddings": "one-hot"},
    "uniform": {"attention": "uniform", "values": "fixed"},
    "one-hot and uniform": {"embeddings": "one-hot", "attention": "uniform"},
    "two heads": {"width": 8, "heads": 2, "biases": "all"},
    "deep": {"width": 6, "layers": 3, "heads": 3, "residual": True, "biases": "all", "tied": False},
    "deep and uniform": {"width": 6, "layers": 2, "attention": "uniform"},
}


def network(kind: type[TopicTransformer] = TopicTransformer, **shape: Any) -> TopicTransformer:
    made = kind(TopicTransformerConfig(vocab_size=WORDS, initial_scale=3.0, **shape), seed=1).double()
    for number, parameter in enumerate(made.parameters()):
        if parameter.ndim == 1:
            parameter.data.normal_(generator=generator(2, number))
    return made


def forward_by_token(net: TopicTransformer, inputs: Tensor) -> Tensor:
    """Return predictions (n, N, V + 1) computed for each token."""
    config = net.config
    states = F.one_hot((inputs + 1) % (WORDS + 1), WORDS + 1).double() @ net.embedding.double()
    for layer in range(config.layers):
        values = states @ net.values[layer].T
        if config.biases == "all":
            values = values + net.value_biases[layer]
        if config.attention == "uniform":
            mixed = values.mean(1, keepdim=True).expand_as(values)
        else:
            queries = states @ net.queries[layer].T
            if config.biases == "all":
                queries = queries + net.query_biases[layer]
            parts = (queries, states @ net.keys[layer].T, values)
            heads = [part.unflatten(2, (config.heads, -1)).transpose(1, 2) for part in parts]
            mixed = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        states = mixed + states if config.residual else mixed
    predicted = states @ (net.embedding.double() if net.prediction is None else net.prediction).T
    return predicted if net.bias is None else predicted + net.bias


def error(kind: type[TopicTransformer], shape: dict[str, Any]) -> float:
    net = network(kind, **shape)
    with torch.no_grad():
        return float(
            (net(net.counts(INPUTS), net.places(INPUTS)) - forward_by_token(net, INPUTS)).abs().max()
        )


@pytest.mark.parametrize("name", SHAPES)
def test_attention_over_counts_agrees_with_attention_over_tokens(name: str) -> None:
    assert error(TopicTransformer, SHAPES[name]) < 1e-10


def test_attention_weights_agree_with_attention_over_tokens() -> None:
    net = network()
    weights = net.attention(net.counts(INPUTS))[:, 0]
    places = net.places(INPUTS)
    states = F.one_hot(places, WORDS + 1).double() @ net.embedding
    scores = states @ net.queries[0].T @ (states @ net.keys[0].T).mT / math.sqrt(WORDS + 1)
    expected = scores.softmax(2)
    rows = torch.arange(len(INPUTS))[:, None, None]
    torch.testing.assert_close(
        weights[rows, places[:, :, None], places[:, None]], expected, rtol=1e-10, atol=1e-12
    )


def test_padding_has_no_effect() -> None:
    net = network(width=8, heads=2)
    padded = F.pad(INPUTS, (0, 3), value=-1)
    assert torch.equal(net.counts(padded), net.counts(INPUTS))
    assert torch.equal(net.counts(INPUTS).sum(1), torch.full((4,), 9.0))
    assert net.counts(INPUTS)[0, 0] == (INPUTS[0] == WORDS).sum()


@pytest.mark.parametrize("name", SHAPES)
def test_network_is_a_masked_oracle(name: str) -> None:
    check_masked(network(**SHAPES[name]).float(), sites=3, tolerance=1e-5)


def test_fixed_values_are_not_trained_but_saved(tmp_path: Any) -> None:
    net = TopicTransformer(TopicTransformerConfig(vocab_size=3, embeddings="one-hot", values="fixed"))
    fixed_values = torch.arange(16.0).view(4, 4)
    net.fix_values(fixed_values)
    trained = {name for name, parameter in net.named_parameters() if parameter.requires_grad}
    assert trained == {"keys.0", "queries.0", "bias"}
    loaded = load_model(save_model(net, tmp_path / "net.safetensors"), TopicTransformer)
    assert torch.equal(loaded.values[0], fixed_values)
    counts = net.counts(torch.tensor([[0, 1, 3]]))
    assert torch.equal(loaded(counts, torch.tensor([[0]])), net(counts, torch.tensor([[0]])))


def test_invalid_fixed_values_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^values='trained': make the network with"):
        network().fix_values(torch.eye(6))
    with pytest.raises(InputError, match=r"^values=\(5, 5\): give a matrix \(6, 6\)"):
        network(values="fixed").fix_values(torch.eye(5))
