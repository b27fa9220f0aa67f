"""Compare losses on corpora with sums over all sequences and with separate passes for each mask."""

import json
import math
from collections.abc import Callable

import pytest
import torch
from test_loop import RECIPE, batches, killed_before, network
from torch import Tensor

from refusals import expect_error
from trialogue.data import ManyBody, Table
from trialogue.errors import InputError
from trialogue.models import Transformer, TransformerConfig
from trialogue.models.networks.attention_only import AttentionOnly, AttentionOnlyConfig
from trialogue.models.networks.factored import FactoredAttention, FactoredAttentionConfig
from trialogue.oracles import Autoregressive, enumerate_sequences
from trialogue.randomness import generator
from trialogue.training import (
    CorpusLosses,
    corpus_losses,
    corpus_score,
    packed_token_loss,
    token_scores,
    train,
)

MODEL = ManyBody.random(sites=4, vocab_size=3, order=3, rank=5, scale=2.0, seed=2)
TOKENS = enumerate_sequences(3, 4)[::7]


def expected(tokens: Tensor, first: int, given: Callable[[int], list[int]]) -> tuple[Tensor, Tensor]:
    """Compute losses and hits of `MODEL` at sites from `first`, given the sites `given(site)`, by enumeration."""
    states = enumerate_sequences(3, 4)
    weights = (-MODEL.energy(states)).softmax(0)
    losses, right = (
        torch.zeros(tokens.shape, dtype=torch.float64),
        torch.zeros(tokens.shape, dtype=torch.bool),
    )
    for row, sequence in enumerate(tokens):
        for site in range(first, 4):
            alike = (states[:, given(site)] == sequence[given(site)]).all(1)
            distribution = torch.stack(
                [weights[alike & (states[:, site] == value)].sum() for value in range(3)]
            )
            losses[row, site] = -(distribution[sequence[site]] / distribution.sum()).log()
            right[row, site] = distribution.argmax() == sequence[site]
    return losses, right


def others(site: int) -> list[int]:
    return [other for other in range(4) if other != site]


def before(site: int) -> list[int]:
    return list(range(site))


def test_fixed_context_model_skips_the_first_tokens():
    model = AttentionOnly(AttentionOnlyConfig(vocab_size=3, context=2, width=4, heads=2, head_width=2))
    scores = token_scores(model, TOKENS)
    assert scores.scored.tolist() == [[False, False, True, True]] * len(TOKENS)
    for site in (2, 3):
        distributions = model(TOKENS[:, site - 2 : site]).log_softmax(1)
        right = distributions.gather(1, TOKENS[:, [site]])[:, 0].double()
        torch.testing.assert_close(scores.losses[:, site], -right, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match="does not predict the first 2 tokens of a row; use longer rows"):
        token_scores(model, TOKENS[:, :2])


def test_masked_losses_match_the_conditionals():
    losses, right = expected(TOKENS, 0, others)
    scores = token_scores(MODEL, TOKENS)
    torch.testing.assert_close(scores.losses, losses, rtol=1e-11, atol=1e-11)
    assert torch.equal(scores.right, right)
    assert scores.scored.all()
    total = scores.whole()
    assert total.loss == pytest.approx(losses.mean().item(), abs=1e-12)
    assert total.accuracy == pytest.approx(right.double().mean().item(), abs=1e-12)
    assert total.targets == TOKENS.numel()
    assert total.error == pytest.approx(losses.mean(1).std().item() / math.sqrt(len(TOKENS)), rel=1e-9)
    # Scoring selected tokens gives the same losses and ignores the other tokens.
    selected = torch.rand(TOKENS.shape, generator=generator(0, "asked")) < 0.5
    partial = token_scores(MODEL, TOKENS, selected)
    assert torch.equal(partial.scored, selected)
    assert partial.whole().loss == pytest.approx(losses[selected].mean().item(), abs=1e-11)


def test_causal_losses_match_the_conditionals_after_the_first_token():
    joint = (-MODEL.energy(enumerate_sequences(3, 4))).softmax(0).view(3, 3, 3, 3)
    losses, right = expected(TOKENS, 1, before)
    scores = token_scores(Table(joint.numpy()), TOKENS)
    assert scores.scored.sum(0).tolist() == [0, *[len(TOKENS)] * 3]
    torch.testing.assert_close(scores.losses, losses, rtol=1e-11, atol=1e-11)
    assert torch.equal(scores.right, right)


def test_transformer_losses_in_one_pass_match_step_by_step_losses(monkeypatch):
    model = Transformer(TransformerConfig(vocab_size=3, max_length=6), seed=3).eval()
    tokens = batches(0)
    scores = token_scores(model, tokens)
    step_by_step = corpus_losses.next_token_scores(
        corpus_losses._oracle_log_probs(model), model.vocab_size, tokens
    )
    torch.testing.assert_close(scores.losses, step_by_step.losses, rtol=1e-5, atol=1e-5)
    assert isinstance(model, Autoregressive)
    monkeypatch.setattr(corpus_losses, "_ENTRIES_AT_ONCE", 1)  # The batch contains a single row.
    torch.testing.assert_close(token_scores(model, tokens).losses, scores.losses, rtol=1e-5, atol=1e-5)
    # Packed rows have one more target, the first token given BOS.
    first = model(torch.full((1, 1), model.bos)).log_softmax(-1)[0, 0, tokens[:, 0]]
    mean = (scores.losses.sum() - first.double().sum()) / tokens.numel()
    assert packed_token_loss(model, tokens).item() == pytest.approx(mean.item(), abs=1e-5)


@pytest.mark.parametrize("kind", ["transformer", "factored"])
def test_masked_tokens_are_scored_separately(kind):
    shape = TransformerConfig(vocab_size=3, max_length=6, causal=False)
    factored = FactoredAttentionConfig(vocab_size=3, sites=6, layers=2)
    model = Transformer(shape, 1).eval() if kind == "transformer" else FactoredAttention(factored, 1)
    tokens = batches(1)
    scores = token_scores(model, tokens)
    for row in range(len(tokens)):
        for site in range(6):
            inputs = tokens[row : row + 1].clone()
            inputs[0, site] = model.mask
            if isinstance(model, Transformer):
                logits = model(inputs)[0, site, :3]
            else:
                logits = model.logits(inputs, torch.tensor([site]))[0]
            loss = -logits.log_softmax(-1)[tokens[row, site]].item()
            assert scores.losses[row, site].item() == pytest.approx(loss, abs=1e-5)
    together = (
        model.log_probs(tokens, torch.ones_like(tokens, dtype=torch.bool)) if kind == "factored" else None
    )
    if together is not None:  # the result of masking all sites together
        wrong = -together.gather(-1, tokens[..., None])[..., 0]
        assert (wrong - scores.losses).abs().max() > 1e-3


def test_sampled_tokens_are_reproducible():
    tokens = TOKENS.repeat(3, 1)
    one, again = corpus_score(MODEL, tokens, 0.5, 1), corpus_score(MODEL, tokens, 0.5, 1)
    assert one == again
    assert one.targets == tokens.numel() // 2
    assert one != corpus_score(MODEL, tokens, 0.5, 2)
    assert one.loss == pytest.approx(corpus_score(MODEL, tokens).loss, abs=6 * one.error)


def test_losses_are_recorded_during_training(tmp_path):
    corpora = {"seen": batches(0), "uniform": torch.randint(0, 3, (8, 6), generator=generator(0, "uniform"))}

    def follow(name: str, of: Callable[[int], Tensor] = batches) -> CorpusLosses:
        losses = CorpusLosses(corpora, (0, 1, 5, 13, 20), path=tmp_path / f"{name}.jsonl")
        folder = tmp_path / name
        train(network(), of, RECIPE, progress=False, checkpoint_dir=folder, observer=losses)
        return losses

    uninterrupted = follow("whole")
    assert [(row["step"], row["corpus"]) for row in uninterrupted.rows] == [
        (step, corpus) for step in (0, 1, 5, 13, 20) for corpus in corpora
    ]
    model = train(network(), batches, RECIPE, progress=False).model
    assert uninterrupted.rows[-2]["loss"] == corpus_score(model, corpora["seen"]).loss
    with pytest.raises(SystemExit):
        follow("killed", killed_before(14))
    # The run is killed after the checkpoint of step 12, so step 13 is recorded twice.
    assert json.loads((tmp_path / "killed.jsonl").read_text().splitlines()[-1])["step"] == 13
    assert follow("killed").rows == uninterrupted.rows
    assert (tmp_path / "killed.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()


BAD: list[tuple[str, Callable[[], object]]] = [
    ("tokens", lambda: corpus_score(MODEL, torch.tensor([[0, 1, 2, 3]]))),
    ("tokens", lambda: corpus_score(network(), torch.tensor([[0], [1]]))),
    ("tokens", lambda: corpus_score(MODEL, torch.zeros(0, 4))),
    ("tokens", lambda: token_scores(MODEL, TOKENS, torch.zeros_like(TOKENS, dtype=torch.bool)).whole()),
    ("scored", lambda: token_scores(MODEL, TOKENS, torch.ones(1, 4, dtype=torch.bool))),
    ("share", lambda: corpus_score(MODEL, TOKENS, 0.0)),
    ("model", lambda: corpus_score(torch.nn.Linear(2, 2), TOKENS)),
]


def test_invalid_input_is_rejected():
    for field, call in BAD:
        assert expect_error("", call).field == field


def test_file_of_another_kind_is_rejected(tmp_path):
    path = tmp_path / "losses.jsonl"
    path.write_text("no losses\n")
    expect_error("the file is not a list of corpus losses", CorpusLosses, {"text": TOKENS}, (0,), path=path)
