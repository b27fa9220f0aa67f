"""Tests of the study `potts-patterns`: cold chains, texts, order by number of colours, and wrong measurements."""

import math
from pathlib import Path

import pytest

from trialogue_lab.ledger import Rows
from trialogue_lab.studies.potts_coherence.chains import make_shared_token_chain, make_uniform_chain
from trialogue_lab.studies.potts_patterns import statistics
from trialogue_lab.studies.potts_patterns.config import Config
from trialogue_lab.studies.potts_patterns.measure import measure_cold_chain, simulate_plane
from trialogue_lab.studies.potts_patterns.survival import measure_survival


def test_cold_chains_keep_states_of_zero_energy() -> None:
    rows = [
        row
        for family in (make_uniform_chain(2, 2, 1.0, 3), make_shared_token_chain(1.0))
        for row in measure_cold_chain(family, 50)
    ]
    found = Rows(rows)
    assert statistics.cold_change()(found).item() < 1e-10
    assert statistics.cold_error()(found).item() < 1e-10
    hot = Rows([row for row in rows if row["cold"] <= 2])
    assert statistics.cold_change()(hot).item() > 1e-3
    # For nearest neighbours, two patterns and T = E, bonds are independent.
    [warm] = [row["no_wall"] for row in rows if row["cold"] == 1 and row["length"] == 50][:1]
    assert 0 < warm < 0.5


def test_texts_decay_at_the_exact_rate() -> None:
    found = Rows(list(measure_survival(Config(widths=(1, 2), models=2, texts=400), 3, Path())))
    assert statistics.decay_ratio()(found).item() == pytest.approx(1, abs=0.15)


def test_order_of_ten_patterns_is_lost_at_a_lower_temperature_than_order_of_two() -> None:
    config = Config(colours=(2, 10), side=12, temperatures=(0.5, 0.82), chains=20, sweeps=150)
    found = Rows(list(simulate_plane(config, 1, Path())))
    assert statistics.order_of_colours(4)(found).item() > 0.5
    assert statistics.order_of_colours(10)(found).item() < 0.1
    assert statistics.order_of_colours(10, hottest=0.5)(found).item() > 0.9
    assert statistics.order_of_colours(10, least=10, above_critical=True)(found).item() < 0.1
    assert statistics.order_at(10, 0.5)(found).item() > 0.9
    assert found["colours"].critical.tolist()[0] == pytest.approx(1 / math.log(1 + math.sqrt(2)))
