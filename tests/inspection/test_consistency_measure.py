"""Tests of the measure of masked consistency with consistent and inconsistent conditionals."""

from itertools import product

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from models.tiny_pretrained import tiny_model
from trialogue.inspection.measures import consistency
from trialogue.inspection.measures.consistency import MaskedConsistency, compare_orders
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.subject import Subject
from trialogue.oracles import Masked
from trialogue.randomness import Streams, numpy_generator

SITES, VOCAB = 4, 3
TEXT = (1, 0, 1, 0)


class Conditionals(Masked):
    """Conditionals of a random joint distribution, with single-site conditionals perturbed by `bend`."""

    vocab_size, sites = VOCAB, SITES

    def __init__(self, bend: float = 0.0) -> None:
        distribution = numpy_generator(0, "joint").dirichlet(np.ones(VOCAB**SITES))
        self.joint = torch.from_numpy(distribution).view((VOCAB,) * SITES)
        self.bend = bend

    def log_probs(self, tokens: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
        states = torch.tensor(list(product(range(VOCAB), repeat=SITES)))
        fits = ((states == tokens[:, None]) | masked[:, None]).all(2)
        values = torch.nn.functional.one_hot(states, VOCAB).double()
        logits = (torch.einsum("rs,snv->rnv", self.joint.flatten() * fits, values) + 1e-12).log()
        is_single = masked.sum(1) == 1
        shown = (tokens[is_single] == 1) & ~masked[is_single]
        logits[is_single, ..., 0] += self.bend * shown.sum(1)[:, None]
        return logits.log_softmax(-1)


def orders(bend: float, rows: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tokens = torch.from_numpy(numpy_generator(1, "rows").integers(0, VOCAB, (rows, SITES)))
    first, second = torch.full((rows,), 1), torch.full((rows,), 3)
    streams = Streams(0, torch.arange(rows))
    return compare_orders(Conditionals(bend), tokens, first, second, streams.choose)


def test_joint_distribution_is_equal_in_both_orders():
    text, drawn, information = orders(0.0)
    assert np.abs(text).max() < 1e-8
    assert np.abs(drawn).max() < 1e-8
    assert information.mean() > 0.02


def test_inconsistent_conditionals_are_detected():
    text, drawn, _ = orders(0.7)
    assert np.abs(text).mean() > 0.05
    assert drawn.mean() > 0.005


class Enumerated(Subject):
    """Subject whose texts have `SITES` letters between two special tokens, with the conditionals of the letters."""

    max_length = SITES + 2

    def __init__(self, bend: float) -> None:
        letters = Tokenizer(WordLevel({"a": 0, "b": 1, "c": 2, "[CLS]": 3, "[SEP]": 4, "[MASK]": 5}, "a"))
        letters.pre_tokenizer = WhitespaceSplit()
        letters.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 3), ("[SEP]", 4)]
        )
        names = {"mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        fast = PreTrainedTokenizerFast(tokenizer_object=letters, **names)
        super().__init__(tiny_model(vocab_size=6), fast, "masked", name="enumerated")
        self.masked = Inside(bend)


class Inside(Masked):
    """Conditionals of the tokens between the special tokens."""

    vocab_size = 6

    def __init__(self, bend: float) -> None:
        self.inner = Conditionals(bend)

    def log_probs(self, tokens: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
        assert tokens[:, [0, -1]].tolist() == [[3, 4]] * len(tokens)
        assert not masked[:, [0, -1]].any()
        distributions = torch.full((*tokens.shape, self.vocab_size), -torch.inf, dtype=torch.float64)
        distributions[:, 1:-1, :VOCAB] = self.inner.log_probs(tokens[:, 1:-1], masked[:, 1:-1])
        return distributions


def exact_divergences(model: Masked, distance: int) -> tuple[float, float]:
    """Return the exact divergence and information at each first position of the text `b a b a`."""
    divergences, information = [], []
    for first in range(SITES - distance):
        second = first + distance
        both = torch.zeros(1, SITES, dtype=torch.bool)
        both[0, [first, second]] = True
        start = model.log_probs(torch.tensor([TEXT]), both)[0]
        divergence = tells = 0.0
        for one, other in product(range(VOCAB), repeat=2):
            filled = torch.tensor([TEXT])
            filled[0, first], filled[0, second] = one, other
            given_one = model.site_log_weights(filled, torch.tensor([second]))[0, other]
            given_other = model.site_log_weights(filled, torch.tensor([first]))[0, one]
            ahead, behind = start[first, one] + given_one, start[second, other] + given_other
            divergence += float(ahead.exp() * (ahead - behind))
            tells += float(ahead.exp() * (given_one - start[second, other]))
        divergences.append(divergence)
        information.append(tells)
    return float(np.mean(divergences)), float(np.mean(information))


@pytest.mark.parametrize("bend", [0.0, 0.7])
def test_quantities_equal_enumeration(bend, monkeypatch):
    monkeypatch.setattr(consistency, "_ROWS", 800)
    subject, material = Enumerated(bend), Material()
    material.documents = ["b a b a"] * 800
    found = MaskedConsistency().take(subject, material, Effort(), lambda _: None)
    curves = {one.name: one.points for one in found if one.along}
    single = {one.name: one.points[0] for one in found if not one.along}
    exact = {distance: exact_divergences(Conditionals(bend), distance) for distance in (1, 2)}
    divergence, tells = "divergence of the orders", "information of one token about the other"
    reach = ", mean over 1 to 2 apart"
    for place, name in enumerate((divergence, tells)):
        for point in curves[name]:
            room = 2.5 * (point.high - point.low) / 2 if point.high is not None else 1e-8
            assert point.value == pytest.approx(exact[point.at][place], abs=max(room, 1e-8)), (name, point.at)
        wanted = np.mean([one[place] for one in exact.values()])
        ends = single[name + reach]
        room = 2.5 * (ends.high - ends.low) / 2 if ends.high is not None else 1e-8
        assert ends.value == pytest.approx(wanted, abs=max(room, 1e-8))
    # The two exact values differ by more than the tolerance.
    assert exact[1][1] > exact[1][0] + 0.02
    assert (single[f"orders differ on the text{reach}"].value > 0.01) == (bend > 0)
