"""Tests of document batches as counts, of their losses, and of norms during training."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from one_line_errors import refusals
from trialogue.data import BertMasking, TopicModel
from trialogue.training import IndependentMasks, Replacement
from trialogue_lab.models.topic_transformer import TopicTransformer, TopicTransformerConfig
from trialogue_lab.studies.topic_training.attention import compute_attention_by_class
from trialogue_lab.training import counted_documents
from trialogue_lab.training.counted_documents import CountedDocuments, document_loss
from trialogue_lab.training.weight_norms import WeightNorms

T = TopicModel(3, 2, concentration=0.5)
MASKING = BertMasking(p_mask=0.4, p_correct=0.2, p_random=0.3)
TOKENS = T.draw(30, (4, 9), seed=2).tokens


def network(**shape: Any) -> TopicTransformer:
    return TopicTransformer(TopicTransformerConfig(vocab_size=6, initial_scale=2.0, **shape), seed=3).double()


def loss_by_positions(net: TopicTransformer, step: int, kind: str) -> float:
    """Return the loss computed for each masked position, averaged within its document."""
    targets = IndependentMasks(0.4).masks(*TOKENS.shape, step, 5) & (TOKENS >= 0)
    inputs = Replacement(0.5, 0.3).replaced(TOKENS, targets, 6, 6, 5, step).masked_fill(TOKENS < 0, -1)
    losses = []
    for document, targets_of_document, right in zip(inputs, targets, TOKENS, strict=True):
        if not targets_of_document.any():
            continue
        counts = net.counts(document[None])
        predicted = net(counts, net.places(document[targets_of_document])[None])[0]
        words = right[targets_of_document] + 1
        if kind == "squared":
            losses.append((predicted - F.one_hot(words, 7)).square().sum(1).mean())
        else:
            losses.append(F.cross_entropy(predicted, words))
    return float(torch.stack(losses).mean())


def error(module: Any, kind: Any) -> float:
    net = network()
    documents = module["CountedDocuments"](TOKENS, 6, MASKING, 10, seed=5)
    with torch.no_grad():
        batch = documents.read(TOKENS, 4)
        return abs(float(module["document_loss"](net, *batch, kind=kind)) - loss_by_positions(net, 4, kind))


@pytest.mark.parametrize("kind", ["cross-entropy", "squared"])
def test_losses_agree_with_single_positions(kind: Any) -> None:
    assert error(vars(counted_documents), kind) < 1e-5


def test_masks_depend_on_the_step_or_are_fixed() -> None:
    fresh, kept = (CountedDocuments(TOKENS, 6, MASKING, 10, seed=5, once=once) for once in (False, True))
    assert all(torch.equal(a, b) for a, b in zip(fresh(3), fresh(3), strict=True))
    assert not torch.equal(fresh(3).counts, fresh(4).counts)
    all_rows = {tuple(row) for row in kept.all.counts.tolist()}
    assert {tuple(row) for step in range(20) for row in kept(step).counts.tolist()} <= all_rows
    lengths = (TOKENS >= 0).sum(1)
    assert torch.equal(fresh.all.counts.sum(1).long(), lengths)
    unread = CountedDocuments(TOKENS, 6, MASKING, 10, seed=5, read_masked=False).all
    masked = IndependentMasks(0.4).masks(*TOKENS.shape, 0, 5) & (TOKENS >= 0)
    assert torch.equal(unread.counts.sum(1).long(), lengths - masked.sum(1))
    assert float(unread.counts[:, 0].sum()) == 0


def test_the_penalty_counts_trained_matrices() -> None:
    net = network(embeddings="one-hot", attention="uniform")
    batch = CountedDocuments(TOKENS, 6, MASKING, 10)(0)
    plain, penalised = (document_loss(net, *batch, penalty=weight) for weight in (0.0, 0.5))
    assert float((penalised - plain).detach()) == pytest.approx(
        0.5 * float(net.values[0].detach().square().sum())
    )
    (gradient,) = torch.autograd.grad(penalised - plain, [net.values[0]])
    torch.testing.assert_close(gradient, net.values[0].detach())


class Turning:
    """Return the update of a network with two matrices."""

    def __init__(self, step: int, angle: float, size: float) -> None:
        self.step = step
        angles = torch.tensor(angle)
        self.model = {"turns": [size * torch.stack((angles.cos(), angles.sin()))[None]], "none": []}


def test_norms_and_rotations_of_matrices_have_the_expected_values() -> None:
    norms = WeightNorms((0, 5, 9), lambda model: model)
    assert [step for step in range(10) if norms.is_due(step)] == [0, 5, 9]
    for step, angle, size in ((0, 0.3, 2.0), (5, 0.3 + torch.pi / 2, 6.0), (9, 0.3 - torch.pi / 2, 0.0)):
        norms.updated(Turning(step, angle, size))  # type: ignore[arg-type]
    assert [norms.norms[step]["turns"] for step in (0, 5, 9)] == pytest.approx([2, 6, 0], abs=1e-6)
    assert [norms.rotations[step]["turns"] for step in (0, 5, 9)] == pytest.approx([0, 0.5, 0], abs=1e-6)
    assert "none" not in norms.norms[0]


def classes_by_pairs(net: TopicTransformer, tokens: torch.Tensor, shift: int) -> list[float]:
    sums, pairs = [0.0] * 3, [0] * 3
    for row in tokens:
        document = row[row >= 0]
        places = net.places(document)
        states = net.embedding[places]
        scores = states @ net.queries[0].T @ (states @ net.keys[0].T).T / 7**0.5
        weights = scores.softmax(1) * len(document) / 100
        for one, word in enumerate(document.tolist()):
            for two, other in enumerate(document.tolist()):
                same_topic = (word + shift) // 2 == (other + shift) // 2
                kind = 0 if word == other else 1 if same_topic else 2
                sums[kind] += float(weights[one, two])
                pairs[kind] += 1
    return [total / count for total, count in zip(sums, pairs, strict=True)]


@pytest.mark.parametrize("shift", [0, 1])
def test_attention_by_class_agrees_with_pairs_of_positions(shift: int) -> None:
    net = network()
    with torch.no_grad():
        expected = classes_by_pairs(net, TOKENS[:6], shift)
    assert list(compute_attention_by_class(net, TOKENS[:6], T, shift)) == pytest.approx(expected, rel=1e-6)
    assert list(compute_attention_by_class(net, TOKENS[:6], T, 1 - shift)) != pytest.approx(
        expected, rel=1e-3
    )


test_invalid_input_is_rejected = refusals(
    "^{}",
    [
        (lambda: CountedDocuments(TOKENS, 5, MASKING, 10), "tokens=5: use words from 0 to 4"),
        (lambda: CountedDocuments(TOKENS, 6, BertMasking(p_mask=0.0), 10), "p_mask=0.0: no word"),
        (
            lambda: document_loss(network(), *CountedDocuments(TOKENS, 6, MASKING, 2)(0), kind="mse"),  # type: ignore[arg-type]
            "kind='mse': use one of cross-entropy, squared",
        ),
        (
            lambda: compute_attention_by_class(network(), TOKENS, TopicModel(2, 2, 1)),
            "model=4: use a topic model with 6 words",
        ),
    ],
)
