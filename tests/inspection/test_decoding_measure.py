"""Tests of the distances of decoding rules against enumerated distributions."""

import numpy as np
import pytest
import torch

from models.tiny_pretrained import tiny_model, tiny_tokenizer
from trialogue.data import Table
from trialogue.inspection.measures import decoding
from trialogue.inspection.measures.decoding import (
    DecodingRules,
    publisher_rule,
    rule_distances,
    sharpened_distance,
    sharpening_weights,
)
from trialogue.inspection.measures.measure import Effort, Material
from trialogue.inspection.subject import Subject
from trialogue.oracles import Autoregressive, next_log_probs
from trialogue.samplers import truncated
from trialogue.samplers.exact import total_variation

VOCAB, HORIZON = 5, 3
CUTS = {"top-p": {"top_p": 0.6}, "top-k": {"top_k": 2}, "warm": {"temperature": 0.7}}


def oracle(eos: int | None = None) -> Table:
    distributions = np.random.Generator(np.random.PCG64(3)).dirichlet(np.ones(VOCAB), VOCAB + 1)
    return Table(lambda prefix: distributions[prefix[-1] if prefix else VOCAB], VOCAB, eos=eos, memory=1)


def distribution_of(model: Autoregressive, eos: int | None, horizon: int) -> dict[tuple[int, ...], float]:
    """Return the distribution of texts of up to `horizon` tokens after the prompt 0."""
    distribution = {(): 1.0}
    for _ in range(horizon):
        grown: dict[tuple[int, ...], float] = {}
        for text, p in distribution.items():
            if text and text[-1] == eos:
                grown[text] = p
                continue
            step = next_log_probs(model, torch.tensor([[0, *text]])).exp()[0]
            grown |= {(*text, token): p * float(step[token]) for token in range(VOCAB)}
        distribution = grown
    return distribution


@pytest.mark.parametrize("eos", [None, 4])
def test_distances_of_texts_equal_enumeration(eos):
    model = oracle(eos)
    _, complete = rule_distances(model, CUTS, [0], 20_000, HORIZON, 0)
    for name, cut in CUTS.items():
        for horizon in range(1, HORIZON + 1):
            exact = total_variation(
                distribution_of(model, eos, horizon), distribution_of(truncated(model, **cut), eos, horizon)
            )
            assert complete[name][horizon - 1].mean() == pytest.approx(exact, abs=0.02), (name, horizon)
            assert complete[name].min() >= 0
            assert complete[name].max() <= 1
    # The ratio in the other direction gives a different number.
    assert complete["top-p"][-1].mean() > 0.3


def test_distances_of_one_token_are_exact():
    model = oracle()
    single, complete = rule_distances(model, CUTS, [0], 7, 1, 0)
    base = next_log_probs(model, torch.tensor([[0]])).exp()[0]
    for name, cut in CUTS.items():
        other = next_log_probs(truncated(model, **cut), torch.tensor([[0]])).exp()[0]
        assert single[name] == pytest.approx(float((base - other).abs().sum() / 2), abs=1e-9)
        assert complete[name].shape == (1, 7)


def test_distance_to_the_sharpened_distribution_of_texts():
    model, temperature = oracle(), 0.4
    logs = sharpening_weights(model, temperature, [0], 40_000, HORIZON, 0)
    tempered = distribution_of(truncated(model, temperature), None, HORIZON)
    power = {text: p ** (1 / temperature) for text, p in distribution_of(model, None, HORIZON).items()}
    total = sum(power.values())
    exact = total_variation(tempered, {text: p / total for text, p in power.items()})
    assert sharpened_distance(logs[-1]) == pytest.approx(exact, abs=0.02)
    assert exact > 0.05
    assert np.isnan(sharpened_distance(np.array([-np.inf, -np.inf])))  # All texts have ended.
    # For a single token, both distributions are equal.
    assert sharpened_distance(logs[0]) == pytest.approx(0, abs=1e-9)


def test_ended_texts_have_zero_weight():
    model, temperature = oracle(4), 0.4
    logs = sharpening_weights(model, temperature, [0], 40_000, HORIZON, 0)

    def restrict_to_unfinished(distribution: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
        unfinished = {
            text: p for text, p in distribution.items() if len(text) == HORIZON and 4 not in text[:-1]
        }
        return {text: p / sum(unfinished.values()) for text, p in unfinished.items()}

    tempered = restrict_to_unfinished(distribution_of(truncated(model, temperature), 4, HORIZON))
    sharpened = restrict_to_unfinished(
        {text: p ** (1 / temperature) for text, p in distribution_of(model, 4, HORIZON).items()}
    )
    exact = total_variation(tempered, sharpened)
    assert sharpened_distance(logs[-1]) == pytest.approx(exact, abs=0.02)


def test_quantities_equal_rule_distances(monkeypatch):
    monkeypatch.setattr(decoding, "RULES", CUTS)
    subject = Subject(tiny_model(), tiny_tokenizer(), "causal", name="tiny")
    subject.oracle, subject.start_tokens = oracle(), [0]
    subject.oracle.window = 9
    subject.oracle.generation_config = {"do_sample": True, "min_p": 0.3, "typical_p": 0.9}
    found = {one.name: one for one in DecodingRules().take(subject, Material(), Effort(), lambda _: None)}
    publisher = {"publisher: min-p 0.3 (without typical_p)": {"min_p": 0.3}}
    single, complete = rule_distances(oracle(), CUTS | publisher, [0], 48, 8, 0)
    for name, values in complete.items():
        points = found[f"text, {name}"].points
        assert [point.at for point in points] == [1, 2, 4, 8]
        assert [point.value for point in points] == [values[int(point.at) - 1].mean() for point in points]
        assert points[0].value < points[-1].value
        assert found[f"one token, {name}"].points[0].value == single[name].mean()
    sharpened = found["text, temperature 0.7 and p(x)^(1/0.7)"].points
    assert all(point.low is None for point in sharpened)
    assert sharpened[0].value == pytest.approx(0, abs=1e-9)


def test_sliding_window_limits_texts():
    subject = Subject(tiny_model(), tiny_tokenizer(), "causal", name="tiny")
    subject.oracle, subject.start_tokens = oracle(), [0]
    subject.oracle.window = 1
    assert DecodingRules().model_refusal(subject) == "it generates texts of at most 1 tokens"


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ({}, {}),
        ({"temperature": 0.6, "top_p": 0.9}, {}),
        ({"do_sample": True, "eos_token_id": 2}, {}),
        ({"do_sample": True, "top_k": 0}, {}),
        (
            {"do_sample": True, "temperature": 0.6, "top_k": -1},
            {"publisher: temperature 0.6": {"temperature": 0.6}},
        ),
        (
            {"do_sample": True, "top_p": 0.8, "repetition_penalty": 1.1},
            {"publisher: top-p 0.8 (without repetition_penalty)": {"top_p": 0.8}},
        ),
    ],
)
def test_publisher_rule(stated, wanted):
    assert publisher_rule(stated) == wanted


def test_batch_size_does_not_change_results(monkeypatch):
    model, together = oracle(4), []
    for size in (3, 48):
        monkeypatch.setattr(decoding, "_BATCH_SIZE", size)
        single, complete = rule_distances(model, CUTS, [0], 20, HORIZON, 0)
        logs = sharpening_weights(model, 0.7, [0], 20, HORIZON, 0)
        together.append((*single.values(), *complete.values(), logs))
    for apart, complete in zip(*together, strict=True):
        assert apart == pytest.approx(complete, abs=1e-6)
