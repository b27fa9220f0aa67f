"""Copying: of a model that looks its tokens up everything is right, of one that looks too near by nothing."""

import math

import numpy as np
import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.analysis.inspection.copying import DISTANCES, Copying, repeated
from trialogue.analysis.inspection.measure import Effort, Material
from trialogue.analysis.inspection.subject import Subject

VOCAB = 300


class Lookup(Subject):
    """A causal model that answers with the token that stands `back` tokens before the next, with probability `sure`."""

    def __init__(self, back: int, sure: float) -> None:
        super().__init__(tiny_model(), tiny_tokenizer(), "causal", name="lookup")
        self.back, self.sure = back, sure

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        laws = torch.full((*tokens.shape, VOCAB), (1 - self.sure) / (VOCAB - 1))
        source = torch.zeros_like(tokens)
        source[:, self.back - 1 :] = tokens[:, : tokens.shape[1] - self.back + 1]
        return laws.scatter_(-1, source[..., None], self.sure).log()


def test_each_row_is_written_twice_in_ordinary_tokens() -> None:
    subject = Subject(tiny_model(), tiny_tokenizer(), "causal", name="tiny")
    rows = repeated(subject.ordinary, 16, 5, 0)
    assert rows.shape == (5, 32)
    assert torch.equal(rows[:, :16], rows[:, 16:])
    assert not {0, 1, 2} & set(rows.flatten().tolist())
    assert len(subject.ordinary) == VOCAB - 3


def test_what_is_looked_up_at_the_right_distance_is_right_and_costs_what_it_should() -> None:
    subject, sure = Lookup(16, 0.75), 0.75
    found = {one.name: one for one in Copying().take(subject, Material(), Effort(), lambda _: None)}
    right = {point.at: point.value for point in found["copied"].points}
    losses = {point.at: point.value for point in found["loss"].points}
    assert list(right) == list(DISTANCES[:3])  # it reads 256 tokens
    assert right[16] == 1
    assert losses[16] == pytest.approx(-math.log(sure), abs=1e-5)
    assert max(right[4], right[64]) < 0.1
    assert losses[64] > 5
    every = found["copied, mean over distances"].points[0].value
    assert every == pytest.approx(np.mean(list(right.values())))
    [exact] = [point for point in found["copied"].points if point.at == 16]
    assert exact.low > 0.99
    assert exact.high == 1


def test_costs_are_the_tokens_that_are_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    subject, fed = Lookup(4, 0.5), []
    own = subject.logits
    monkeypatch.setattr(subject, "logits", lambda tokens: fed.append(tokens.numel()) or own(tokens))
    Copying().take(subject, Material(), Effort(factor=0.5), lambda _: None)
    assert sum(fed) == Copying().tokens(subject, Material(), Effort(factor=0.5))
