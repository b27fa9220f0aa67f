"""Tests of the measures of brackets and of copying, with exact, forgetful and guessing models."""

import math

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.inspection.measures.brackets import (
    DEPTH,
    Brackets,
    bracket_distribution,
    bracket_log_probs,
    bracket_tokens,
    insert_pairs,
    next_brackets,
)
from trialogue.inspection.measures.copying import DISTANCES, Copying, sample_repeated_tokens
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.subject import Subject
from trialogue.oracles import Masked
from trialogue.randomness import numpy_generator


class Nested(Subject):
    """Causal model with the exact distribution of the next bracket given the last `memory` brackets."""

    def __init__(self, memory: int = 10**6) -> None:
        super().__init__(tiny_model(), tiny_tokenizer(), "causal", name="nested")
        self.memory = memory

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        ids = torch.tensor(bracket_tokens(self))
        strings = (tokens[..., None] == ids).long().argmax(-1)
        rows, length = strings.shape
        width = min(self.memory, length)
        stop = torch.arange(1, length + 1)
        places = (stop - stop.clamp_max(width))[:, None] + torch.arange(width)
        read = strings[:, places.clamp_max(length - 1)].view(-1, width)
        log_probs = bracket_distribution(length + 1).next_log_probs(read, stop.clamp_max(width).repeat(rows))
        distributions = torch.full((*tokens.shape, 300), -1e4)
        distributions[..., ids] = log_probs.view(rows, length, -1).clamp_min(-1e4).float()
        return distributions


def taken(subject: Subject, effort: float = 0.25) -> dict[tuple[str, str], list[float]]:
    found = Brackets().take(subject, Material(), Effort(factor=effort), lambda _: None)
    return {(one.name, one.along): [point.value for point in one.points] for one in found}


def test_brackets_are_single_tokens():
    subject = Nested()
    ids = bracket_tokens(subject)
    assert ids is not None
    assert subject.tokenizer.convert_ids_to_tokens(ids) == ["(", ")", "[", "]"]


def test_exact_model_is_correct_and_balanced():
    found = taken(Nested())
    assert set(found["correct closing brackets", "brackets read"]) == {1.0}
    assert found["correct closing brackets", "brackets open"] == [1.0] * DEPTH
    assert found["excess loss", "brackets read"] == pytest.approx([0] * 5, abs=1e-3)
    assert found["change by an inserted pair", ""] == pytest.approx([0], abs=1e-6)
    assert found["probability of brackets, in strings of 256", ""] == pytest.approx([1], abs=1e-6)


def test_model_with_short_memory_is_wrong_and_not_balanced():
    found = taken(Nested(memory=6), 1.0)
    accuracy = found["correct closing brackets", "brackets read"]
    assert accuracy[0] > accuracy[-1]
    assert accuracy[-1] < 0.95
    assert found["excess loss", "brackets read"][-1] > 0.1
    assert found["change by an inserted pair", ""][0] > 0.02


class Shallow(Nested):
    """Model that is exact up to depth `DEPTH` / 2, and assumes round brackets at greater depth."""

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        ids = torch.tensor(bracket_tokens(self))
        depth = bracket_distribution(tokens.shape[1]).depth((tokens[..., None] == ids).long().argmax(-1))
        guessed = torch.full((300,), -1e4)
        guessed[ids] = torch.tensor([0.3, 0.3, 0.2, 0.2]).log()
        return torch.where((depth > DEPTH // 2)[..., None], guessed, super().logits(tokens))


def test_accuracy_by_depth():
    open_now = taken(Shallow())["correct closing brackets", "brackets open"]
    assert open_now[:2] == [1.0, 1.0]
    assert open_now[2:] == pytest.approx([0.5, 0.5], abs=0.2)


def test_pairs_are_inserted_at_every_length(monkeypatch):
    subject, inputs = Nested(), []
    own = subject.logits
    monkeypatch.setattr(subject, "logits", lambda tokens: inputs.append(tokens) or own(tokens))
    Brackets().take(subject, Material(), Effort(), lambda _: None)
    shorter, longer = (next(one for one in inputs if one.shape[1] == length) for length in (8, 16))
    assert len(shorter) == len(longer)
    assert not torch.equal(shorter, longer[:, :8])


def test_uniform_model_has_chance_accuracy_and_known_excess_loss(monkeypatch):
    subject = Nested()
    monkeypatch.setattr(subject, "logits", lambda tokens: torch.zeros(*tokens.shape, 300))
    found = taken(subject)
    assert found["probability of brackets, in strings of 256", ""] == pytest.approx([4 / 300])
    assert found["change by an inserted pair", ""] == [0]
    rows = bracket_distribution(256).sample(200)
    exact = next_brackets(bracket_distribution(256), rows)
    entropy = -(exact.exp() * exact.clamp_min(-1e9)).sum(-1).mean()
    loss = np.mean(found["excess loss", "brackets read"][1:])
    assert loss == pytest.approx(math.log(4) - float(entropy), abs=0.05)


def test_inserted_pairs_keep_the_exact_distribution():
    rows = bracket_distribution(12).sample(50)
    longer = insert_pairs(rows, numpy_generator(0, "test"))
    assert longer.shape == (50, 14)
    distribution = bracket_distribution(20)
    before = distribution.next_log_probs(rows, torch.full((50,), 12))
    behind = distribution.next_log_probs(longer, torch.full((50,), 14))
    assert torch.allclose(before, behind)
    assert torch.allclose(bracket_log_probs(Nested(), rows)[0].exp().sum(-1), torch.ones(50, 12).double())


VOCAB = 300


class Lookup(Subject):
    """Causal model that predicts the token `back` positions before the next one with probability `sure`."""

    def __init__(self, back: int, sure: float) -> None:
        super().__init__(tiny_model(), tiny_tokenizer(), "causal", name="lookup")
        self.back, self.sure = back, sure

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        distributions = torch.full((*tokens.shape, VOCAB), (1 - self.sure) / (VOCAB - 1))
        source = torch.zeros_like(tokens)
        source[:, self.back - 1 :] = tokens[:, : tokens.shape[1] - self.back + 1]
        return distributions.scatter_(-1, source[..., None], self.sure).log()


def test_rows_repeat_ordinary_tokens():
    subject = Subject(tiny_model(), tiny_tokenizer(), "causal", name="tiny")
    rows = sample_repeated_tokens(subject.ordinary_tokens, 16, 5, 0)
    assert rows.shape == (5, 32)
    assert torch.equal(rows[:, :16], rows[:, 16:])
    assert not {0, 1, 2} & set(rows.flatten().tolist())
    assert len(subject.ordinary_tokens) == VOCAB - 3


def test_accuracy_and_loss_of_a_lookup_model():
    subject, sure = Lookup(16, 0.75), 0.75
    found = {one.name: one for one in Copying().take(subject, Material(), Effort(), lambda _: None)}
    accuracy = {point.at: point.value for point in found["copied"].points}
    losses = {point.at: point.value for point in found["loss"].points}
    assert list(accuracy) == list(DISTANCES[:3])  # The maximum length is 256 tokens.
    assert accuracy[16] == 1
    assert losses[16] == pytest.approx(-math.log(sure), abs=1e-5)
    assert max(accuracy[4], accuracy[64]) < 0.1
    assert losses[64] > 5
    every = found["copied, mean over distances 4 to 64"].points[0].value
    assert every == pytest.approx(np.mean(list(accuracy.values())))
    [exact] = [point for point in found["copied"].points if point.at == 16]
    assert exact.low > 0.9
    assert exact.high == 1


def test_estimated_tokens_equal_processed_tokens(monkeypatch):
    subject, fed = Lookup(4, 0.5), []
    own = subject.logits
    monkeypatch.setattr(subject, "logits", lambda tokens: fed.append(tokens.numel()) or own(tokens))
    Copying().take(subject, Material(), Effort(factor=0.5), lambda _: None)
    assert sum(fed) == Copying().count_tokens(subject, Material(), Effort(factor=0.5))


class Framed(Subject):
    """Masked model with special tokens around each text, which predicts the token `back` positions before the mask."""

    def __init__(self, back: int, sure: float) -> None:
        tokenizer = Tokenizer.from_str(tiny_tokenizer().backend_tokenizer.to_str())
        tokenizer.add_special_tokens(["[MASK]", "[CLS]", "[SEP]"])
        self.ends = [tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=list(zip(("[CLS]", "[SEP]"), self.ends, strict=True))
        )
        names = {"pad_token": "<pad>", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
        super().__init__(tiny_model(vocab_size=len(fast)), fast, "masked", name="framed")
        self.masked = Finding(len(fast), back, sure, self.ends)


class Finding(Masked):
    """Conditionals of `Framed`, which raise an error if the special tokens are misplaced."""

    def __init__(self, vocab_size: int, back: int, sure: float, ends: list[int]) -> None:
        self.vocab_size, self.back, self.sure, self.ends = vocab_size, back, sure, ends

    def log_probs(self, tokens: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
        assert tokens[:, [0, -1]].tolist() == [self.ends] * len(tokens)
        distributions = torch.full((*tokens.shape, self.vocab_size), (1 - self.sure) / (self.vocab_size - 1))
        return distributions.scatter_(-1, tokens.roll(self.back, 1)[..., None], self.sure).log()


def test_masked_model_predicts_masked_positions():
    subject = Framed(16, 0.75)
    assert subject.frame == ([subject.ends[0]], [subject.ends[1]])
    found = {one.name: one for one in Copying().take(subject, Material(), Effort(), lambda _: None)}
    accuracy = {point.at: point.value for point in found["copied"].points}
    losses = {point.at: point.value for point in found["loss"].points}
    assert list(accuracy) == list(DISTANCES[:3])
    assert accuracy[16] == 1
    assert losses[16] == pytest.approx(-math.log(0.75), abs=1e-5)
    assert max(accuracy[4], accuracy[64]) < 0.1
