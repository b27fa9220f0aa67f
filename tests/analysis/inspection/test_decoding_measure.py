"""Decoding rules: distances are those of enumerated laws, of one token and of whole texts."""

import numpy as np
import pytest
import torch

from trialogue.analysis.inspection.decoding import (
    effective,
    rule_distances,
    sharpened_distance,
    sharpening_weights,
)
from trialogue.data import Table
from trialogue.inference import truncated
from trialogue.inference.laws import total_variation
from trialogue.oracles import Autoregressive, next_log_probs

VOCAB, HORIZON = 5, 3
CUTS = {"top-p": {"top_p": 0.6}, "top-k": {"top_k": 2}, "warm": {"temperature": 0.7}}


def oracle(eos: int | None = None) -> Table:
    laws = np.random.Generator(np.random.PCG64(3)).dirichlet(np.ones(VOCAB), VOCAB + 1)
    return Table(lambda prefix: laws[prefix[-1] if prefix else VOCAB], VOCAB, eos=eos, memory=1)


def law_of(model: Autoregressive, eos: int | None, horizon: int) -> dict[tuple[int, ...], float]:
    """The law of texts of up to `horizon` tokens behind a 0."""
    law = {(): 1.0}
    for _ in range(horizon):
        grown: dict[tuple[int, ...], float] = {}
        for text, p in law.items():
            if text and text[-1] == eos:
                grown[text] = p
                continue
            step = next_log_probs(model, torch.tensor([[0, *text]])).exp()[0]
            grown |= {(*text, token): p * float(step[token]) for token in range(VOCAB)}
        law = grown
    return law


@pytest.mark.parametrize("eos", [None, 4])
def test_distances_of_texts_are_those_of_enumeration(eos: int | None) -> None:
    own = oracle(eos)
    _, whole = rule_distances(own, CUTS, [0], 20_000, HORIZON, 0)
    for name, cut in CUTS.items():
        for horizon in range(1, HORIZON + 1):
            exact = total_variation(law_of(own, eos, horizon), law_of(truncated(own, **cut), eos, horizon))
            assert whole[name][horizon - 1].mean() == pytest.approx(exact, abs=0.02), (name, horizon)
            assert whole[name].min() >= 0
            assert whole[name].max() <= 1
    # The other direction, as one might mistake it, is another number.
    assert whole["top-p"][-1].mean() > 0.3


def test_distances_of_one_token_are_exact_at_every_prefix() -> None:
    own = oracle()
    single, whole = rule_distances(own, CUTS, [0], 7, 1, 0)
    base = next_log_probs(own, torch.tensor([[0]])).exp()[0]
    for name, cut in CUTS.items():
        other = next_log_probs(truncated(own, **cut), torch.tensor([[0]])).exp()[0]
        assert single[name] == pytest.approx(float((base - other).abs().sum() / 2), abs=1e-9)
        assert whole[name].shape == (1, 7)


def test_a_temperature_is_held_against_the_sharpened_law_of_texts() -> None:
    own, temperature = oracle(), 0.4
    logs = sharpening_weights(own, temperature, [0], 40_000, HORIZON, 0)
    tempered = law_of(truncated(own, temperature), None, HORIZON)
    power = {text: p ** (1 / temperature) for text, p in law_of(own, None, HORIZON).items()}
    total = sum(power.values())
    exact = total_variation(tempered, {text: p / total for text, p in power.items()})
    assert sharpened_distance(logs[-1]) == pytest.approx(exact, abs=0.02)
    assert exact > 0.05
    # Of one token they are the same law.
    assert sharpened_distance(logs[0]) == pytest.approx(0, abs=1e-9)


def test_texts_that_have_ended_are_not_among_those_that_go_on() -> None:
    own, temperature = oracle(4), 0.4
    logs = sharpening_weights(own, temperature, [0], 40_000, HORIZON, 0)

    def going(law: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
        kept = {text: p for text, p in law.items() if len(text) == HORIZON and 4 not in text[:-1]}
        return {text: p / sum(kept.values()) for text, p in kept.items()}

    tempered = going(law_of(truncated(own, temperature), 4, HORIZON))
    sharpened = going({text: p ** (1 / temperature) for text, p in law_of(own, 4, HORIZON).items()})
    exact = total_variation(tempered, sharpened)
    assert sharpened_distance(logs[-1]) == pytest.approx(exact, abs=0.02)


def test_the_effective_number_of_texts() -> None:
    assert effective(np.zeros(8)) == pytest.approx(8)
    assert effective(np.array([0.0, -np.inf, -np.inf])) == pytest.approx(1)
    assert effective(np.array([-np.inf])) == 0
    assert np.isnan(sharpened_distance(np.array([-np.inf, -np.inf])))
