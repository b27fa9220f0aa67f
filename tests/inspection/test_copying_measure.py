"""Tests of the measure of copying with models that look up tokens at a fixed distance."""

import math

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.inspection.measures.copying import DISTANCES, Copying, repeated
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.subject import Subject
from trialogue.oracles import Masked

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
    rows = repeated(subject.ordinary_tokens, 16, 5, 0)
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
