"""Tests of transformers on Dyck languages: exact constructions, the oracle, and invalid input."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from refusals import expect_error
from trialogue.data import Dyck
from trialogue.errors import InputError
from trialogue.models.networks.saved import load_model, save_model
from trialogue.randomness import generator
from trialogue.testing import check_oracle
from trialogue_lab.models.dyck_transformer import (
    DyckTransformer,
    DyckTransformerConfig,
    balanced_transformer,
    uniform_attention_transformer,
)
from trialogue_lab.models.dyck_transformer.constructions import smallest_projection
from trialogue_lab.models.dyck_transformer.embeddings import embedding_table, state_of
from trialogue_lab.models.dyck_transformer.layers import DyckLayer

TRAINABLE = (
    DyckTransformerConfig(),
    DyckTransformerConfig(embedding="sums", mlps=((), (7,)), width=9),
    DyckTransformerConfig(embedding="angles", positions="linear", residual=True, norm_floor=0.1, ends=True),
    DyckTransformerConfig(
        embedding="tokens", width=12, residual=True, norm="sum", mlps=((20, 12), (20, 12)), positions="linear"
    ),
    DyckTransformerConfig(embedding="tokens", width=12, norm="sum", mlps=((), (5, 12)), uniform=True),
)


def largest_distance(
    network: DyckTransformer, longest: int, count: int, types: int = 3, depth: int = 4
) -> float:
    """Return the largest total variation of the next-bracket distribution on random prefixes."""
    distribution = Dyck(longest + 1, (1 / types,) * types, 0.5, depth, complete=False)
    tokens, lengths = distribution.sample_prompts(count, (0, longest), seed=5)
    difference = (
        network.next_log_probs(tokens, lengths).exp() - distribution.next_log_probs(tokens, lengths).exp()
    )
    return float(difference.abs().sum(1).max() / 2)


def test_constructions_are_exact_for_long_prefixes() -> None:
    for network in (balanced_transformer(3, 4, 2.0, seed=1), uniform_attention_transformer(3, 4)):
        assert largest_distance(network, 40, 200) < 1e-12
        assert largest_distance(network, 5000, 12) < 1e-9


@pytest.mark.parametrize(("types", "depth"), [(1, 1), (1, 4), (2, 1), (5, 2), (2, 7)])
def test_constructions_of_other_sizes_are_exact(types: int, depth: int) -> None:
    for network in (balanced_transformer(types, depth, 1.0), uniform_attention_transformer(types, depth)):
        assert largest_distance(network, 60, 100, types, depth) < 1e-9


@pytest.mark.parametrize("part", ["query", "key", "value"])
def test_noise_in_the_attention_causes_errors_on_long_prefixes(part: str) -> None:
    network = balanced_transformer(types=3, depth=4, logits_std=1.0)
    weight = getattr(network.attention, part).weight
    with torch.no_grad():
        weight += 0.1 * torch.randn(weight.shape, dtype=weight.dtype, generator=generator(0, "noise"))
    assert largest_distance(network, 3000, 12) > 0.2


@torch.no_grad()
def test_a_zero_head_predicts_nothing_whatever_the_attention() -> None:
    """Proposition 2.2.1: any attention patterns are those of an optimal network of the empty task."""
    network = DyckTransformer(TRAINABLE[0]).eval()
    tokens = torch.tensor([[0, 2, 3, 1]])
    assert bool(network(tokens).any())
    network.head.weight.zero_()
    if network.head.bias is not None:
        network.head.bias.zero_()
    assert not bool(network(tokens).any())


@torch.no_grad()
@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_a_layer_without_values_is_the_identity(floor: float) -> None:
    """Section 2.2.5.2: larger networks contain smaller ones, because LN(0) = 0."""
    layer = DyckLayer(5, 5, (), DyckTransformerConfig(residual=True, norm_floor=floor, learned_gain=False))
    x = torch.randn(2, 4, 5, generator=generator(0, "identity"))
    assert not torch.equal(layer(x), x)
    layer.attention.value.weight.zero_()
    assert torch.equal(layer(x), x)


def test_smallest_projection_agrees_with_enumeration_of_open_brackets() -> None:
    types, depth = 2, 4
    scores = torch.randn(17, 17, dtype=torch.float64, generator=generator(1, "scores"))
    smallest = 1.0
    for token, d in product((1, 3), range(1, depth)):
        for kinds in product(range(types), repeat=d):
            open_states = [state_of(2 * kind, at, depth) for at, kind in enumerate(kinds, 1)]
            contributions = scores[open_states, state_of(token, d + 1, depth)].exp()
            smallest = min(smallest, float(contributions.min() / contributions.norm()))
    assert smallest_projection(scores, types, depth) == pytest.approx(smallest, rel=1e-12)
    assert smallest_projection(scores * 1.01, types, depth) != pytest.approx(smallest, rel=1e-6)


def test_constructions_beyond_double_precision_are_rejected() -> None:
    with pytest.raises(InputError, match=r"^logits_std=9.0: an unmatched bracket's part of the sum can be"):
        balanced_transformer(types=3, depth=4, logits_std=9.0)


@pytest.mark.parametrize("config", TRAINABLE, ids=lambda config: config.embedding)
def test_next_log_probs_agree_with_the_forward_pass(config: DyckTransformerConfig, tmp_path: Path) -> None:
    network = DyckTransformer(replace(config, double=True, initial_scale=0.7), seed=3).eval()
    tokens, lengths = Dyck(12, (0.5, 0.5), 0.5, 4, complete=False).sample_prompts(40, (0, 12), seed=1)
    full_rows = Dyck(12, (0.5, 0.5), 0.5, 4, complete=False).sample(40, seed=1)
    logits = network(full_rows).log_softmax(-1)
    for stop in (0, 5, 12):
        found = network.next_log_probs(full_rows, torch.full((40,), stop))
        assert torch.allclose(found, logits[:, stop], atol=1e-12)
    by_row = torch.cat(
        [network(row[None, :n]).log_softmax(-1)[:, -1] for row, n in zip(tokens, lengths, strict=True)]
    )
    assert torch.allclose(network.next_log_probs(tokens, lengths), by_row, atol=1e-12)
    weights = network.attention_weights(full_rows)
    assert len(weights) == len(config.mlps)
    assert all(torch.allclose(each.sum(-1), torch.ones(40, 13, dtype=torch.float64)) for each in weights)
    loaded = load_model(save_model(network, tmp_path / "network.safetensors"), DyckTransformer)
    assert torch.equal(loaded(full_rows), network(full_rows))


def test_transformer_is_an_oracle() -> None:
    check_oracle(DyckTransformer(replace(TRAINABLE[3], double=True)).eval(), capacity=5, steps=8, seeds=(0,))


def test_embeddings_of_states_are_distinct() -> None:
    def count_distinct_rows(table: Tensor) -> int:
        return len(table.unique(dim=0))

    assert [embedding_table(name, 2, 4, 0).shape for name in ("pairs", "sums", "angles")] == [
        (17, 17),
        (17, 9),
        (17, 7),
    ]
    assert all(
        count_distinct_rows(embedding_table(name, 2, 4, 0)) == 17 for name in ("pairs", "sums", "angles")
    )
    assert count_distinct_rows(embedding_table("tokens", 2, 4, 6)) == 5


def test_invalid_input_is_rejected() -> None:
    network = balanced_transformer(types=2, depth=4)

    def predict(tokens: list[int]) -> None:
        network.next_log_probs(torch.tensor([tokens]), torch.tensor([len(tokens)]))

    with pytest.raises(
        InputError, match=r"^tokens=\[0, 0, 0, 0, 0\]: its last bracket is nested deeper than 4"
    ):
        predict([0, 0, 0, 0, 0, 1, 1])
    expect_error(r"^tokens=\[0, 1, 1\]: its last bracket closes what is not open", predict, [0, 1, 1])
    expect_error(r"^tokens=4: use brackets from 0 to 3", predict, [0, 4])
    expect_error(r"^mlps=", DyckTransformer, DyckTransformerConfig(norm="sum", mlps=((50, 20),)))
