"""Transformers on Dyck languages: exact constructions at any length, the oracle against its forward pass, bad input."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

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
    """The largest total variation of the next-bracket distribution from the exact one, on random prefixes."""
    distribution = Dyck(longest + 1, (1 / types,) * types, 0.5, depth, complete=False)
    tokens, lengths = distribution.sample_prompts(count, (0, longest), seed=5)
    difference = (
        network.next_log_probs(tokens, lengths).exp() - distribution.next_log_probs(tokens, lengths).exp()
    )
    return float(difference.abs().sum(1).max() / 2)


def test_constructions_are_exact_at_any_length() -> None:
    for network in (balanced_transformer(3, 4, 2.0, seed=1), uniform_attention_transformer(3, 4)):
        assert largest_distance(network, 40, 200) < 1e-12
        assert largest_distance(network, 5000, 12) < 1e-9


@pytest.mark.parametrize(("types", "depth"), [(1, 1), (1, 4), (2, 1), (5, 2), (2, 7)])
def test_other_sizes_are_exact(types: int, depth: int) -> None:
    for network in (balanced_transformer(types, depth, 1.0), uniform_attention_transformer(types, depth)):
        assert largest_distance(network, 60, 100, types, depth) < 1e-9


@pytest.mark.parametrize("part", ["query", "key", "value"])
def test_what_breaks_the_balance_breaks_long_prefixes(part: str) -> None:
    network = balanced_transformer(types=3, depth=4, logits_std=1.0)
    weight = getattr(network.attention, part).weight
    with torch.no_grad():
        weight += 0.1 * torch.randn(weight.shape, dtype=weight.dtype, generator=generator(0, "noise"))
    assert largest_distance(network, 3000, 12) > 0.2


def test_the_smallest_projection_is_that_of_all_unmatched_brackets() -> None:
    types, depth = 2, 4
    scores = torch.randn(17, 17, dtype=torch.float64, generator=generator(1, "scores"))
    least = 1.0
    for token, d in product((1, 3), range(1, depth)):
        for kinds in product(range(types), repeat=d):
            opened = [state_of(2 * kind, at, depth) for at, kind in enumerate(kinds, 1)]
            parts = scores[opened, state_of(token, d + 1, depth)].exp()
            least = min(least, float(parts.min() / parts.norm()))
    assert smallest_projection(scores, types, depth) == pytest.approx(least, rel=1e-12)
    assert smallest_projection(scores * 1.01, types, depth) != pytest.approx(least, rel=1e-6)


def test_sums_that_rounding_hides_are_refused() -> None:
    with pytest.raises(InputError, match=r"^logits_std=9.0: an unmatched bracket's part of the sum can be"):
        balanced_transformer(types=3, depth=4, logits_std=9.0)


@pytest.mark.parametrize("config", TRAINABLE, ids=lambda config: config.embedding)
def test_the_oracle_answers_as_the_forward_pass(config: DyckTransformerConfig, tmp_path: Path) -> None:
    network = DyckTransformer(replace(config, double=True, initial_scale=0.7), seed=3).eval()
    tokens, lengths = Dyck(12, (0.5, 0.5), 0.5, 4, complete=False).sample_prompts(40, (0, 12), seed=1)
    whole = Dyck(12, (0.5, 0.5), 0.5, 4, complete=False).sample(40, seed=1)
    logits = network(whole).log_softmax(-1)
    for stop in (0, 5, 12):
        answers = network.next_log_probs(whole, torch.full((40,), stop))
        assert torch.allclose(answers, logits[:, stop], atol=1e-12)
    by_row = torch.cat(
        [network(row[None, :n]).log_softmax(-1)[:, -1] for row, n in zip(tokens, lengths, strict=True)]
    )
    assert torch.allclose(network.next_log_probs(tokens, lengths), by_row, atol=1e-12)
    weights = network.attention_weights(whole)
    assert len(weights) == len(config.mlps)
    assert all(torch.allclose(each.sum(-1), torch.ones(40, 13, dtype=torch.float64)) for each in weights)
    again = load_model(save_model(network, tmp_path / "network.safetensors"), DyckTransformer)
    assert torch.equal(again(whole), network(whole))


def test_it_keeps_the_contract_of_oracles() -> None:
    check_oracle(DyckTransformer(replace(TRAINABLE[3], double=True)).eval(), capacity=5, steps=8, seeds=(0,))


def test_embeddings_tell_all_states_apart() -> None:
    def different(table: Tensor) -> int:
        return len(table.unique(dim=0))

    assert [embedding_table(name, 2, 4, 0).shape for name in ("pairs", "sums", "angles")] == [
        (17, 17),
        (17, 9),
        (17, 7),
    ]
    assert all(different(embedding_table(name, 2, 4, 0)) == 17 for name in ("pairs", "sums", "angles"))
    assert different(embedding_table("tokens", 2, 4, 6)) == 5


def test_bad_input() -> None:
    network = balanced_transformer(types=2, depth=4)

    def ask(tokens: list[int]) -> None:
        network.next_log_probs(torch.tensor([tokens]), torch.tensor([len(tokens)]))

    with pytest.raises(
        InputError, match=r"^tokens=\[0, 0, 0, 0, 0\]: its last bracket is nested deeper than 4"
    ):
        ask([0, 0, 0, 0, 0, 1, 1])
    with pytest.raises(InputError, match=r"^tokens=\[0, 1, 1\]: its last bracket closes what is not open"):
        ask([0, 1, 1])
    with pytest.raises(InputError, match=r"^tokens=4: use brackets from 0 to 3"):
        ask([0, 4])
    with pytest.raises(InputError, match=r"^mlps="):
        DyckTransformer(DyckTransformerConfig(norm="sum", mlps=((50, 20),)))
