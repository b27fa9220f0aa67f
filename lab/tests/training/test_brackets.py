"""Tests of bracket batches, the loss on closing brackets and the contrastive regularizer."""

from functools import partial

import pytest
import torch

from trialogue.data import Dyck, DyckWords
from trialogue.errors import InputError
from trialogue.training.description import describe
from trialogue_lab.models.dyck_transformer import DyckTransformer, DyckTransformerConfig, balanced_transformer
from trialogue_lab.training.brackets import bracket_batches, closing_loss, contrastive_loss, copying_loss


@pytest.mark.parametrize("contrast", ["nested", "released"])
def test_prepended_strings_are_balanced_and_within_the_depth(contrast: str) -> None:
    widths = set()
    for step in range(12):
        tokens, lengths, before = bracket_batches(step, seed=1, batch_size=20, depth=3, contrast=contrast)  # type: ignore[arg-type]
        width = before.shape[1]
        widths.add(width)
        dyck = Dyck(width, (0.5, 0.5), 0.5, 3)
        assert dyck.is_member(before).all()
        assert DyckWords(28, max_depth=3).is_member(tokens, lengths).all()
    assert widths == ({2, 4, 6} if contrast == "nested" else {14})


def test_batches_are_functions_of_the_step() -> None:
    batch = partial(bracket_batches, seed=2, strings="prefixes", contrast="none")
    assert torch.equal(batch(3)[0], batch(3)[0])
    assert not torch.equal(batch(3)[0], batch(4)[0])
    assert batch(0)[1].tolist() == [28] * 100
    assert describe("data", batch)["keywords"]["strings"] == "prefixes"
    with pytest.raises(InputError, match=r"^contrast='mine'"):
        bracket_batches(0, seed=1, contrast="mine")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^strings='sentences'"):
        bracket_batches(0, seed=1, strings="sentences")  # type: ignore[arg-type]


def test_the_loss_counts_only_closing_brackets() -> None:
    network = DyckTransformer(DyckTransformerConfig(initial_scale=0.5, double=True), 1).eval()
    tokens, lengths, before = bracket_batches(0, seed=1, batch_size=10, contrast="nested")
    terms, moves = [], []
    for row, length, prefix in zip(tokens, lengths, before, strict=True):
        word = row[None, :length]
        logits = network(word)[0]
        log_probs = logits.log_softmax(-1)
        terms += [-float(log_probs[i, word[0, i]].detach()) for i in range(length) if word[0, i] % 2]
        moved = network(torch.cat((prefix[None], word), 1))[0, len(prefix) :]
        moves += (moved - logits).detach().square().flatten().tolist()
    expected = sum(terms) / len(terms)
    assert closing_loss(network, tokens, lengths).item() == pytest.approx(expected, rel=1e-5)
    both = contrastive_loss(network, tokens, lengths, before, weight=0.7).item()
    assert both == pytest.approx(expected + 0.7 * sum(moves) / len(moves), rel=1e-5)


def test_decay_adds_half_the_squared_norm_of_all_parameters() -> None:
    network = DyckTransformer(DyckTransformerConfig(norm_floor=1e-5), seed=1)
    batch = bracket_batches(0, seed=1)
    squared = sum(float(each.detach().double().square().sum()) for each in network.parameters())
    added = closing_loss(network, *batch, decay=0.02) - closing_loss(network, *batch)
    assert added.item() == pytest.approx(0.01 * squared, rel=1e-4)


def test_the_regularizer_vanishes_for_perfect_balance() -> None:
    network = balanced_transformer(2, 4, 1.0)
    batch = bracket_batches(0, seed=1, contrast="released")
    assert contrastive_loss(network, *batch).item() == pytest.approx(
        closing_loss(network, *batch[:2]).item(), abs=1e-9
    )
    with torch.no_grad():
        network.attention.query.weight += 0.3 * network.attention.query.weight.roll(1, 0)
    assert contrastive_loss(network, *batch).item() > closing_loss(network, *batch[:2]).item() + 1e-3


def test_the_copying_loss_counts_every_token_within_the_length() -> None:
    network = DyckTransformer(DyckTransformerConfig(initial_scale=0.5, double=True), 1).eval()
    tokens, lengths = bracket_batches(0, seed=1, batch_size=10)
    terms = []
    for row, length in zip(tokens, lengths, strict=True):
        log_probs = network(row[None, :length])[0].log_softmax(-1).detach()
        terms += [-float(log_probs[i + 1, row[i]]) for i in range(length)]
    assert copying_loss(network, tokens, lengths).item() == pytest.approx(sum(terms) / len(terms), rel=1e-5)
    assert copying_loss(network, tokens, lengths - 1).item() != pytest.approx(
        sum(terms) / len(terms), rel=1e-5
    )
