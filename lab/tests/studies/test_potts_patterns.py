"""Tests of the study `potts-patterns`: cold chains, texts, order by number of colours, and wrong measurements."""

import math

import pytest
import torch

from trialogue_lab.ledger import Rows
from trialogue_lab.studies.potts_coherence.chains import shared_tokens, uniform
from trialogue_lab.studies.potts_patterns import measure, statistics, survival
from trialogue_lab.studies.potts_patterns.measure import cold_rows, plane_rows
from trialogue_lab.studies.potts_patterns.survival import survival_rows


def test_cold_chains_keep_states_of_zero_energy() -> None:
    rows = [row for family in (uniform(2, 2, 1.0, 3), shared_tokens(1.0)) for row in cold_rows(family, 50)]
    found = Rows(rows)
    assert statistics.cold_change()(found).item() < 1e-10
    assert statistics.cold_error()(found).item() < 1e-10
    hot = Rows([row for row in rows if row["cold"] <= 2])
    assert statistics.cold_change()(hot).item() > 1e-3
    # For nearest neighbours, two patterns and T = E, bonds are independent.
    [warm] = [row["no_wall"] for row in rows if row["cold"] == 1 and row["length"] == 50][:1]
    assert 0 < warm < 0.5


def test_texts_decay_at_the_exact_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Rows(list(survival_rows((1, 2), 2, 400, 3)))
    assert statistics.decay_ratio()(found).item() == pytest.approx(1, abs=0.15)
    original = survival.greedy_patterns

    def with_another_rate(log_probs: torch.Tensor) -> list[object]:
        return [one._replace(decay_rate=2 * one.decay_rate) for one in original(log_probs)]

    monkeypatch.setattr(survival, "greedy_patterns", with_another_rate)
    assert statistics.decay_ratio()(Rows(list(survival_rows((1, 2), 2, 400, 3)))).item() < 0.7


def test_order_of_ten_patterns_is_lost_at_a_lower_temperature_than_order_of_two(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Rows(list(plane_rows((2, 10), 12, (0.5, 0.82), 20, 150, 1)))
    assert statistics.order_of_colours(4)(found).item() > 0.5
    assert statistics.order_of_colours(10)(found).item() < 0.1
    assert statistics.order_of_colours(10, hottest=0.5)(found).item() > 0.9
    assert statistics.order_of_colours(10, least=10, above_critical=True)(found).item() < 0.1
    assert statistics.order_at(10, 0.5)(found).item() > 0.9
    assert found["colours"].critical.tolist()[0] == pytest.approx(1 / math.log(1 + math.sqrt(2)))
    original = measure.potts_grid
    monkeypatch.setattr(
        measure,
        "potts_grid",
        lambda rows, columns, vocab, coupling: original(rows, columns, vocab, 0.5 * coupling),
    )
    hotter = Rows(list(plane_rows((2,), 12, (0.82,), 20, 150, 1)))
    assert statistics.order_at(2, 0.82)(hotter).item() < 0.2
